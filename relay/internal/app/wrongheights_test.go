package app

import (
	"testing"
	"time"

	"github.com/relaypool/relaypool/hack/localnet/fault"
)

// TestWrongBlockHeightsOfOneEndpointStopNothing: the first endpoint returns slots as
// block heights, a million too high, and the signed transaction is lost. It is signed
// again once it has expired, within a minute, and health names the endpoints that
// contradict each other or themselves.
func TestWrongBlockHeightsOfOneEndpointStopNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for half a minute of slots")
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
			lost := fault.Rule{Method: "sendTransaction", Drop: true}
			s.setFaults("one", test.lie, lost)
			s.setFaults("two", lost)
			s.startRelay()
			s.waitHealthy()
			paths := f.submitWithdrawals(s, 2)
			s.waitHealthReport("rpc", test.want...)
			// No height is checked for half a minute; the rest is the lifetime of a blockhash.
			for deadline := time.Now().Add(3 * time.Minute); s.queryInt("SELECT count(*) FROM attempts WHERE dead") == 0; time.Sleep(100 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("no attempt of a wrong height was found dead")
				}
			}
			s.setFaults("one", test.lie)
			s.setFaults("two")
			s.waitCompleted(paths)
		})
	}
}
