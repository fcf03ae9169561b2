package txmgr_test

import (
	"slices"
	"testing"

	"github.com/relaypool/relaypool/relay/internal/submission"
)

// An attempt has not landed within 16 of the relay's slots, which are two of the model's.
func TestEarlyAttempts(t *testing.T) {
	t.Parallel()
	db := newModelStore(t)
	newFleet := func(t *testing.T, maxFees uint64) (*modelWorld, *modelProcess) {
		t.Helper()
		w, a, _ := newModelFleet(t, db)
		w.chain.maxEarlyFees = maxFees
		a.manager.MaxEarlyFees = maxFees
		return w, a
	}
	wait := func(w *modelWorld, p *modelProcess, slots int) {
		for range slots {
			w.slots(1, landNone)
			w.poll(p)
		}
	}
	t.Run("an early attempt pays more, and one of both lands", func(t *testing.T) {
		w, a := newFleet(t, 100_000)
		s := w.acceptNew(a)
		wait(w, a, 1)
		w.wantAttempts(s, 1)
		first := w.chain.pendingTxs()[0]
		wait(w, a, 1)
		w.wantAttempts(s, 2)
		both := w.chain.pendingTxs()
		early := slices.DeleteFunc(slices.Clone(both), func(tx *modelTx) bool { return tx.signature == first.signature })
		if len(both) != 2 || len(early) != 1 || early[0].fee <= first.fee {
			t.Fatalf("%d transactions are on their way, want the first and one of a higher fee", len(both))
		}
		w.slots(1, landAll)
		w.follow(a, 8)
		w.wantState(s, submission.Completed)
		landed, failed := w.chain.landed(both[0].signature), w.chain.landed(both[1].signature)
		if landed == nil || failed == nil || landed.err != nil || failed.err == nil {
			t.Errorf("the transactions landed as %+v and %+v, want one that failed", landed, failed)
		}
	})
	for name, test := range map[string]struct {
		maxFees  uint64
		attempts int
	}{
		"there are two early attempts at most":      {100_000, 3},
		"the fees in vain stay within the bound":    {6000, 2},
		"without a bound there is no early attempt": {0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w, a := newFleet(t, test.maxFees)
			s := w.acceptNew(a)
			wait(w, a, 8)
			w.wantAttempts(s, test.attempts)
		})
	}
	t.Run("no early attempt follows a transaction that an endpoint reports", func(t *testing.T) {
		w, a := newFleet(t, 100_000)
		w.chain.confirmAfter = 10
		s := w.acceptNew(a)
		w.slots(1, landAll)
		wait(w, a, 4)
		w.wantAttempts(s, 1)
	})
	t.Run("another process finishes the submission with both attempts", func(t *testing.T) {
		w, a := newFleet(t, 100_000)
		s := w.acceptNew(a)
		wait(w, a, 2)
		w.wantAttempts(s, 2)
		a.kill()
		w.slots(1, landAll)
		w.takeOverFrom(a, w.processes[1])
		w.follow(w.processes[1], 8)
		w.wantState(s, submission.Completed)
	})
}
