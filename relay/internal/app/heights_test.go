package app

import (
	"testing"
	"time"

	"github.com/relaypool/relaypool/hack/localnet/fault"
)

// TestAnEndpointThatLiesAboutHeightsStopsNothing: the endpoint that is asked first
// gives slots in place of block heights, a million more than the truth, and what is
// signed is lost. It is signed again once it is dead, which is in a minute, and health
// names who contradicts whom, or itself.
func TestAnEndpointThatLiesAboutHeightsStopsNothing(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		lie  fault.Rule
		told []string
	}{
		"wherever it tells of one":        {fault.Rule{SlotAsHeight: true}, []string{"one contradicts other endpoints", "two contradicts other endpoints"}},
		"only where it gives blockhashes": {fault.Rule{Method: "getLatestBlockhash", SlotAsHeight: true}, []string{"one contradicts other endpoints, or itself"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, vk := newForger(t)
			s := newStand(t, standOptions{vk: vk, endpoints: []string{"one", "two"}})
			s.ready()
			f.fill(s)
			s.stop()
			s.chain.Skip(1_000_000)
			lost := fault.Rule{Method: "sendTransaction", Drop: true}
			s.faults("one", test.lie, lost)
			s.faults("two", lost)
			s.again()
			s.ready()
			paths := f.submit(s, 2)
			s.toldBy("rpc", test.told...)
			// Nothing is judged for half a minute; the rest is the life of a blockhash.
			for deadline := time.Now().Add(3 * time.Minute); s.count("SELECT count(*) FROM attempts WHERE dead") == 0; time.Sleep(100 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("no attempt of a wrong height was found dead")
				}
			}
			s.faults("one", test.lie)
			s.faults("two")
			s.completed(paths)
		})
	}
}
