package ledger

import (
	"errors"
	"testing"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
)

// TestAnOutageIsNoGap: transactions that could not be fetched are fetched again, however
// many they are and however long the outage lasts.
func TestAnOutageIsNoGap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.reconciler(func(o *ReconcilerOptions) { o.Parallel, o.GapTimeout = 1, time.Minute })
	w.fund(3, 1e9)
	w.transfer(4)
	first, between, second := w.transfer(5), w.transfer(6), w.transfer(7)
	away := &onchain.Unavailable{Method: "getTransaction", Kind: onchain.KindTimeout}
	w.broken[first], w.broken[second] = away, away
	for range 3 {
		if err := r.Pass(t.Context()); !errors.Is(err, onchain.ErrUnavailable) {
			t.Fatalf("the pass ends with %v, want the outage", err)
		}
		if w.cursor.Slot != 4 {
			t.Fatalf("the ledger goes up to slot %d, want 4: a payment of the next slot is missing", w.cursor.Slot)
		}
		w.now = w.now.Add(time.Hour)
	}
	clear(w.broken)
	w.broken[between] = away
	if err := r.Pass(t.Context()); err == nil || w.cursor.Slot != 5 {
		t.Errorf("the ledger goes up to slot %d (%v), want 5 and the outage", w.cursor.Slot, err)
	}
	clear(w.broken)
	w.pass(r)
	w.wantAll()
	if w.gaps != 0 {
		t.Errorf("%d gaps are reported, want none", w.gaps)
	}
	w.wantLogged(map[string]int{"does not add up": 0})
}
