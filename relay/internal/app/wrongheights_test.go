package app

import (
	"testing"
	"time"

	"github.com/relaypool/relaypool/hack/localnet/fault"
)

// The first endpoint returns slots as block heights, which are a million too high, and the
// signed transactions are lost. The relay signs new ones once they have expired, and health
// names the endpoints that contradict each other or themselves.
func TestWrongBlockHeightsOfOneEndpointStopNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for half a minute of slots")
	}
	t.Parallel()
	tests := map[string]struct {
		lie  fault.Rule
		want []string
	}{
		"in every answer":       {fault.Rule{SlotAsHeight: true}, []string{"one contradicts other endpoints", "two contradicts other endpoints"}},
		"only with blockhashes": {fault.Rule{Method: "getLatestBlockhash", SlotAsHeight: true}, []string{"one contradicts other endpoints, or itself"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, vk := newForger(t)
			s := newFixture(t, fixtureOptions{vk: vk, endpoints: []string{"one", "two"}})
			s.waitHealthy()
			f.depositNotes(s)
			s.stop()
			s.chain.Skip(1_000_000)
			dropSends := fault.Rule{Method: "sendTransaction", Drop: true}
			s.setFaults("one", test.lie, dropSends)
			s.setFaults("two", dropSends)
			s.startRelay()
			s.waitHealthy()
			paths := f.submitWithdrawals(s, 2)
			s.waitHealthReport("rpc", test.want...)
			// The deadline covers half a minute without height checks and the lifetime of a blockhash.
			for deadline := time.Now().Add(3 * time.Minute); s.queryInt("SELECT count(*) FROM attempts WHERE dead") == 0; time.Sleep(100 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("no attempt with a wrong height was marked dead within 3 minutes")
				}
			}
			s.setFaults("one", test.lie)
			s.setFaults("two")
			s.waitCompleted(paths)
		})
	}
}
