package app

import (
	"testing"
	"time"

	"github.com/relaypool/relaypool/hack/localnet/fault"
)

// TestAnEndpointThatLiesAboutHeightsStopsNothing: the endpoint that is asked first
// gives slots in place of block heights, a million more than the truth, and what is
// signed is lost. It is signed again once it is dead, which is in a minute, and health names
// who contradict each other.
func TestAnEndpointThatLiesAboutHeightsStopsNothing(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	s := newStand(t, standOptions{vk: vk, endpoints: []string{"one", "two"}})
	s.ready()
	f.fill(s)
	s.stop()
	s.chain.Skip(1_000_000)
	s.faults("one", fault.Rule{SlotAsHeight: true}, fault.Rule{Method: "sendTransaction", Drop: true})
	s.faults("two", fault.Rule{Method: "sendTransaction", Drop: true})
	s.again()
	s.ready()
	paths := f.submit(s, 2)
	s.toldBy("rpc", "one contradicts other endpoints", "two contradicts other endpoints")
	// Nothing is judged for half a minute; the rest is the life of a blockhash.
	for deadline := time.Now().Add(3 * time.Minute); s.count("SELECT count(*) FROM attempts WHERE dead") == 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no attempt of a wrong height was found dead")
		}
	}
	s.faults("one", fault.Rule{SlotAsHeight: true})
	s.faults("two")
	s.completed(paths)
}
