package ledger

import (
	"context"
	"testing"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
)

func TestPaymentsOfReadBlocksAreNotReadAgain(t *testing.T) {
	t.Parallel()
	unchanged := func(*onchain.Payment) {}
	tests := map[string]struct {
		change func(*onchain.Payment) // of what the block of slot 6 shows
		err    error                  // of the database
		unread bool                   // the payment of slot 7 cannot be read in the first pass
		final  uint64                 // the newest final slot
		calls  int                    // for the four payments in the slots 5, 6 and 7
	}{
		"blocks that are final":                    {change: unchanged, final: 7, calls: 1},
		"a block that is not final, though listed": {change: unchanged, final: 5, calls: 2},
		"a block of a fork":                        {change: func(p *onchain.Payment) { p.Slot++ }, final: 7, calls: 2},
		"a false balance before it":                {change: func(p *onchain.Payment) { p.Before += 7 }, final: 7, calls: 5},
		"a false balance after it":                 {change: func(p *onchain.Payment) { p.After += 7 }, final: 7, calls: 5},
		"the last slot cannot be read":             {change: func(p *onchain.Payment) { p.After += 7 }, unread: true, final: 7, calls: 4},
		"a database that fails":                    {change: unchanged, err: errDown, final: 7, calls: 4},
		"nothing is known to be final":             {change: unchanged, calls: 4},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			r := w.reconciler(func(o *ReconcilerOptions) {
				o.Finalized = func(_ context.Context, slot uint64) uint64 {
					if slot != 6 {
						t.Errorf("the chain is asked whether slot %d is final, want the last but one", slot)
					}
					return test.final
				}
			})
			w.fund(3, 1e9)
			w.reconcile(r)
			for _, slot := range []uint64{5, 5, 6, 7} {
				w.transfer(slot)
			}
			for _, p := range w.payments[1:] {
				copied := *p
				w.blockPayments[p.Slot] = append(w.blockPayments[p.Slot], &copied)
			}
			test.change(w.blockPayments[6][0])
			w.blockErr = test.err
			before := w.paymentCalls
			if last := w.payments[4].Signature; test.unread {
				w.paymentErrs[last] = &onchain.Unavailable{Method: "getTransaction", Kind: onchain.KindTimeout}
				if err := r.Reconcile(t.Context()); err == nil || w.cursor.Slot != 6 {
					t.Errorf("after a pass that could not read slot 7, the ledger is at slot %d (%v); want 6 and an error", w.cursor.Slot, err)
				}
				delete(w.paymentErrs, last)
			}
			w.reconcile(r)
			w.checkWholeHistory()
			w.checkLogged(map[string]int{"does not add up": 0})
			if n := w.paymentCalls - before; n != test.calls {
				t.Errorf("%d payments were read, want %d", n, test.calls)
			}
		})
	}
}

// newBlocks is a ledger that has read up to slot 3, and the final blocks of later slots with so many payments each.
func newBlocks(t *testing.T, perSlot ...int) (w *fixture, r *Reconciler) {
	t.Helper()
	w = newFixture(t)
	r = w.reconciler(func(o *ReconcilerOptions) {
		o.Finalized = func(_ context.Context, slot uint64) uint64 { return slot }
	})
	w.fund(3, 1e12)
	w.reconcile(r)
	for i, n := range perSlot {
		for range n {
			w.transfer(uint64(5 + i))
		}
	}
	for _, p := range w.payments[1:] {
		copied := *p
		w.blockPayments[p.Slot] = append(w.blockPayments[p.Slot], &copied)
	}
	return w, r
}

// A step is as long as what it reads from the chain, so a busy relay reads its newest slot only.
func TestStepsAreAsLongAsWhatTheyReadFromTheChain(t *testing.T) {
	t.Parallel()
	const half = stepSize / 2
	tests := map[string]struct {
		change func(w *fixture)
		gap    bool
		calls  int
	}{
		"all blocks were read":                    {func(*fixture) {}, false, half},
		"a block was not read":                    {func(w *fixture) { w.blockPayments[5] = nil }, false, 2 * half},
		"the block of the newest was not read":    {func(w *fixture) { w.blockPayments[8] = nil }, false, half},
		"no block was read":                       {func(w *fixture) { clear(w.blockPayments) }, false, 4 * half},
		"no endpoint has a payment of the newest": {func(w *fixture) { w.unknown[w.payments[4*half].Signature] = true }, true, 3 * half},
		"no endpoint has the newest two slots": {func(w *fixture) {
			for _, p := range w.payments[1+2*half:] {
				w.unknown[p.Signature] = true
			}
		}, true, 7 * half},
		"no endpoint has a payment of the second": {func(w *fixture) { w.blockPayments[6] = nil; w.unknown[w.payments[2*half].Signature] = true }, true, 7 * half},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, r := newBlocks(t, half, half, half, half)
			test.change(w)
			before := w.paymentCalls
			w.reconcile(r)
			if n := w.paymentCalls - before; n != test.calls {
				t.Errorf("%d payments were read, want %d", n, test.calls)
			}
			clear(w.unknown)
			w.reconcile(r)
			w.checkWholeHistory()
			w.checkLogged(map[string]int{"does not add up": map[bool]int{true: 1}[test.gap]})
		})
	}
}

// The last slot of a step is read from the chain, also if its block is known and the step ends before a slot that is
// not, or cannot be read.
func TestAStepEndsWithASlotOfTheChain(t *testing.T) {
	t.Parallel()
	t.Run("before a slot that the step is too short for", func(t *testing.T) {
		t.Parallel()
		w, r := newBlocks(t, stepSize, 1, 1, 1)
		w.blockPayments[5], w.blockPayments[7] = nil, nil
		w.blockPayments[6][0].After += 7
		w.reconcile(r)
		w.checkWholeHistory()
		w.checkLogged(map[string]int{"does not add up": 0})
	})
	t.Run("that is longer than a step", func(t *testing.T) {
		t.Parallel()
		w, r := newBlocks(t, stepSize+1, 1, 1)
		w.blockPayments[5] = nil
		w.reconcile(r)
		w.checkWholeHistory()
	})
	for name, test := range map[string]struct {
		unread int    // of the newest slots, which cannot be read
		slot   uint64 // at which the ledger is then
	}{
		"before a slot that cannot be read":    {1, 6},
		"before two slots that cannot be read": {2, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, r := newBlocks(t, 2, 1, 1)
			w.blockPayments[5] = w.blockPayments[5][1:] // partly known
			w.blockPayments[5][0].After += 7
			for _, p := range w.payments[len(w.payments)-test.unread:] {
				w.paymentErrs[p.Signature] = &onchain.Unavailable{Method: "getTransaction", Kind: onchain.KindTimeout}
			}
			if err := r.Reconcile(t.Context()); err == nil || w.cursor.Slot != test.slot {
				t.Errorf("the ledger is at slot %d (%v), want %d and an error", w.cursor.Slot, err, test.slot)
			}
			clear(w.paymentErrs)
			w.reconcile(r)
			w.checkWholeHistory()
			w.checkLogged(map[string]int{"does not add up": 0})
		})
	}
}

// Nothing shows the balance before the first payment of a ledger but the chain.
func TestALedgerDoesNotStartWithABlock(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	r := w.reconciler(func(o *ReconcilerOptions) {
		o.Finalized = func(_ context.Context, slot uint64) uint64 { return slot }
	})
	w.fund(3, 1e12)
	w.transfer(5)
	copied := *w.payments[0]
	copied.Before += 7
	w.blockPayments[3] = []*onchain.Payment{&copied}
	w.reconcile(r)
	w.checkWholeHistory()
	if w.cursor.Opening != 0 {
		t.Errorf("the ledger opens with %d lamports, want 0", w.cursor.Opening)
	}
}

// A gap that another process has read beyond does not make this one accept a later gap at once.
func TestAGapThatAnotherProcessHasReadDoesNotCountForALaterOne(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.fund(3, 1e9)
	one, two := w.reconciler(nil), w.reconciler(nil)
	missing := w.transfer(5)
	w.unknown[missing] = true
	w.reconcile(one)
	w.unknown[missing] = false
	w.reconcile(two)
	w.now = w.now.Add(time.Hour)
	missing = w.transfer(6)
	w.unknown[missing] = true
	w.reconcile(one)
	w.unknown[missing] = false
	w.transfer(7)
	w.reconcile(one)
	w.checkWholeHistory()
	if w.cursor.Gaps != 0 || w.observedGaps != 0 {
		t.Errorf("%d gaps are in the ledger, want none", w.cursor.Gaps)
	}
}

func TestGapsInARowAreAcceptedTogether(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.fund(3, 1e12)
	r := w.reconciler(nil)
	const first, last = 5, 5 + stepSize // two payments each: two steps
	for slot := range uint64(last) {
		if slot >= first {
			w.unknown[w.transfer(slot)] = true
			w.transfer(slot)
		}
	}
	w.reconcile(r)
	w.now = w.now.Add(time.Hour)
	w.reconcile(r)
	if w.cursor.Slot != last-1 {
		t.Errorf("after an hour the ledger is at slot %d, want %d", w.cursor.Slot, last-1)
	}
}
