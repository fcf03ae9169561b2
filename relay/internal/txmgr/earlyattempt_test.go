package txmgr_test

import (
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
		wait(w, a, 1)
		w.wantAttempts(s, 2)
		both := w.chain.pendingTxs()
		if len(both) != 2 || both[0].fee == both[1].fee {
			t.Fatalf("%d transactions are on their way, want 2 of different fees", len(both))
		}
		w.slots(1, landAll)
		w.follow(a, 8)
		w.wantState(s, submission.Completed)
		landed, failed := w.chain.landed(both[0].signature), w.chain.landed(both[1].signature)
		if landed == nil || failed == nil || landed.err != nil || failed.err == nil {
			t.Errorf("the transactions landed as %+v and %+v, want one that failed", landed, failed)
		}
	})
	t.Run("there are two early attempts at most", func(t *testing.T) {
		w, a := newFleet(t, 100_000)
		s := w.acceptNew(a)
		wait(w, a, 8)
		w.wantAttempts(s, 3)
	})
	t.Run("the fees in vain stay within the bound", func(t *testing.T) {
		w, a := newFleet(t, 6000)
		s := w.acceptNew(a)
		wait(w, a, 8)
		w.wantAttempts(s, 2)
	})
	t.Run("no early attempt follows a transaction that an endpoint reports", func(t *testing.T) {
		w, a := newFleet(t, 100_000)
		w.chain.confirmAfter = 10
		s := w.acceptNew(a)
		w.slots(1, landAll)
		wait(w, a, 4)
		w.wantAttempts(s, 1)
	})
	t.Run("without a bound there is no early attempt", func(t *testing.T) {
		w, a := newFleet(t, 0)
		s := w.acceptNew(a)
		wait(w, a, 8)
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
