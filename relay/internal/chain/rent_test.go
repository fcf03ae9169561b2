package chain_test

import (
	"log/slog"
	"testing"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/onchain"
)

// TestRentFollowsTheChain reads the rate before and after it changes. An endpoint that
// returns the rate from before the change is not believed.
func TestRentFollowsTheChain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, localnet.Options{})
	r := chain.NewRentRate(w.endpointsWithFaults(), slog.New(slog.DiscardHandler))
	if r.Rate() != 0 {
		t.Errorf("before the first reading the rate is %d, want 0", r.Rate())
	}
	if err := r.Read(t.Context()); err != nil || r.Rate() != 5080 {
		t.Fatalf("the rate is %d with error %v, want 5080", r.Rate(), err)
	}
	w.SetRent(6960)
	w.Advance(40) // more than a block needs to be finalized
	setFaults := func(rules ...fault.Rule) {
		if err := w.Endpoint("faulty").SetFaults(rules); err != nil {
			t.Fatal(err)
		}
	}
	setFaults(fault.Rule{Method: "getMultipleAccounts", Lag: 39, Ahead: 39})
	if err := r.Read(t.Context()); onchain.KindOf(err) != onchain.KindUnverified || r.Rate() != 5080 {
		t.Errorf("two endpoints disagree: the rate is %d with error %v, want still 5080 and unverified", r.Rate(), err)
	}
	setFaults()
	if err := r.Read(t.Context()); err != nil || r.Rate() != 6960 {
		t.Errorf("the rate is %d with error %v, want 6960", r.Rate(), err)
	}
}
