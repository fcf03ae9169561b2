package ledger

import (
	"errors"
	"testing"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
)

// TestOutageIsNotAGap: transactions that could not be fetched are fetched again, however
// many they are and however long the outage lasts.
func TestOutageIsNotAGap(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	r := w.reconciler(func(o *ReconcilerOptions) { o.Parallel, o.GapTimeout = 1, time.Minute })
	w.fund(3, 1e9)
	w.transfer(4)
	first, between, second := w.transfer(5), w.transfer(6), w.transfer(7)
	unavailable := &onchain.Unavailable{Method: "getTransaction", Kind: onchain.KindTimeout}
	w.paymentErrs[first], w.paymentErrs[second] = unavailable, unavailable
	for range 3 {
		if err := r.Reconcile(t.Context()); !errors.Is(err, onchain.ErrUnavailable) {
			t.Fatalf("Reconcile returns %v, want ErrUnavailable", err)
		}
		if w.cursor.Slot != 4 {
			t.Fatalf("the ledger goes up to slot %d, want 4, because a payment of slot 5 is missing", w.cursor.Slot)
		}
		w.now = w.now.Add(time.Hour)
	}
	clear(w.paymentErrs)
	w.paymentErrs[between] = unavailable
	if err := r.Reconcile(t.Context()); err == nil || w.cursor.Slot != 5 {
		t.Errorf("the ledger goes up to slot %d, error %v; want slot 5 and ErrUnavailable", w.cursor.Slot, err)
	}
	clear(w.paymentErrs)
	w.reconcile(r)
	w.checkWholeHistory()
	if w.observedGaps != 0 {
		t.Errorf("%d gaps are reported, want none", w.observedGaps)
	}
	w.checkLogged(map[string]int{"does not add up": 0})
}
