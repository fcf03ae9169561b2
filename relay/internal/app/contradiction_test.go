package app

import (
	"net/http"
	"testing"

	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/relay/contract"
)

// The first endpoint reports every signature as final, and forwards no transaction. No
// client gets an outcome that has not happened. Health and metrics name both endpoints.
func TestOneEndpointOfTwoCannotFakeAnOutcome(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	s := newFixture(t, fixtureOptions{vk: vk, endpoints: []string{"liar", "honest"}})
	s.waitHealthy()
	f.depositNotes(s)
	s.setFaults("liar", fault.Rule{Method: "getSignatureStatuses", Outcome: fault.OutcomeSucceeds}, fault.Rule{Method: "sendTransaction", Drop: true})
	s.setFaults("honest", fault.Rule{Method: "sendTransaction", Drop: true})
	to := newKey(t).PublicKey()
	in := f.inputs(s, -sol/10, to)
	body := submissionBody(f.prove(t, in), in.Bytes(), map[string]any{"recipient": to.String()})
	a := s.call(http.MethodPost, "/transact", body, "Prefer", "wait=1")
	if a.status != http.StatusAccepted || s.balance(to) != 0 {
		t.Fatalf("the answer is %d %v and the recipient has %d lamports, want 202 and 0 while only one endpoint confirms", a.status, a.body, s.balance(to))
	}
	s.waitHealthReport("queue", "1 for second_endpoint", "a second RPC endpoint")
	s.waitHealthReport("rpc", "honest and liar contradict each other")
	for _, name := range []string{"liar", "honest"} {
		if n, _ := s.metric(contract.MetricRPCContradictions, `endpoint="`+name+`"`); n < 1 {
			t.Errorf("the metric has %v contradictions of endpoint %s, want at least 1", n, name)
		}
	}
	if n, _ := s.metric(contract.MetricHeld, `reason="second_endpoint"`); n != 1 {
		t.Errorf("the metric has %v submissions held for a second endpoint, want 1", n)
	}
	s.setFaults("liar")
	s.setFaults("honest")
	eventually(t, "the recipient is paid", func() bool { return s.balance(to) > 0 })
	eventually(t, "the submission is final", func() bool {
		return s.queryInt(`SELECT count(*) FROM submissions WHERE finalized`) == 1
	})
}
