package app

import (
	"net/http"
	"testing"

	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/relay/contract"
)

// TestOneLiarOfTwoIsNotBelieved: an endpoint that calls every signature final, and
// forwards none, is asked first. No client hears of an outcome that has not come to
// be; health and metrics name both endpoints.
func TestOneLiarOfTwoIsNotBelieved(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	s := newStand(t, standOptions{vk: vk, endpoints: []string{"liar", "honest"}})
	s.ready()
	f.fill(s)
	s.faults("liar", fault.Rule{Method: "getSignatureStatuses", Outcome: fault.OutcomeSucceeds}, fault.Rule{Method: "sendTransaction", Drop: true})
	s.faults("honest", fault.Rule{Method: "sendTransaction", Drop: true})
	to := newKey(t).PublicKey()
	in := f.inputs(s, -sol/10, to)
	body := fields(f.prove(t, in), in.Bytes(), map[string]any{"recipient": to.String()})
	a := s.call(http.MethodPost, "/transact", body, "Prefer", "wait=1")
	if a.status != http.StatusAccepted || s.balance(to) != 0 {
		t.Fatalf("the answer is %d %v on the word of one endpoint, and the recipient holds %d", a.status, a.body, s.balance(to))
	}
	s.toldBy("queue", "1 for second_endpoint", "a second RPC endpoint")
	s.toldBy("rpc", "honest and liar contradict each other")
	for _, name := range []string{"liar", "honest"} {
		if n, _ := s.metric(contract.MetricRPCContradictions, `endpoint="`+name+`"`); n < 1 {
			t.Errorf("no metric counts that %s is contradicted", name)
		}
	}
	if n, _ := s.metric(contract.MetricHeld, `reason="second_endpoint"`); n != 1 {
		t.Errorf("the metric of what waits is %v, want 1", n)
	}
	s.faults("liar")
	s.faults("honest")
	eventually(t, "the recipient is paid", func() bool { return s.balance(to) > 0 })
	eventually(t, "the submission is final", func() bool {
		return s.count(`SELECT count(*) FROM submissions WHERE finalized`) == 1
	})
}
