package commitments_test

import (
	"context"
	"testing"
	"time"
)

func TestANoticeIsEnoughForAPass(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	f := newFollower(t, h, newStore(t, h))
	f.Interval = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { f.Run(ctx); close(done) }()
	defer func() { cancel(); <-done }()
	eventually(t, "the first pass ends", func() bool { return f.Status().Verified })
	for slot := uint64(1); slot <= 3; slot++ {
		h.block(slot, h.transact())
		f.Notice(0)
		f.Notice(0) // neither waits
		eventually(t, "the noticed leaves are published", func() bool { return f.Status().Published == 2*slot })
	}
}

// A tree that was read before a submission landed, or before the blocks that another process has stored, must not
// end a pass.
func TestAPassNeedsATreeThatIsNewEnough(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	s := newStore(t, h)
	f, other := newFollower(t, h, s), newFollower(t, h, s)
	h.block(1, h.transact())
	check := func(what string, wantSlot uint64, wantAge bool) {
		t.Helper()
		if h.minSlot != wantSlot || (h.maxAge > 0) != wantAge {
			t.Errorf("%s: the tree is asked for slot %d, at most %s old; want slot %d, and that an older read is enough: %t", what, h.minSlot, h.maxAge, wantSlot, wantAge)
		}
	}
	must(t, f.Sync(t.Context(), 0))
	check("everything", 0, false)
	must(t, f.Sync(t.Context(), 5))
	check("a landing", 5, true)
	f.Notice(9)
	must(t, f.Sync(t.Context(), 7))
	check("a landing, after a change was reported", 9, true)
	must(t, f.Sync(t.Context(), 7))
	check("the next landing", 7, true)
	f.Notice(0)
	must(t, f.Sync(t.Context(), 7))
	check("a change was reported without its slot", 7, false)
	h.block(12, h.transact())
	must(t, other.Sync(t.Context(), 12))
	h.treeSlot = 11
	must(t, f.Sync(t.Context(), 7))
	check("another process has stored the blocks up to slot 12", 12, true)
	if got := f.Status().Published; got != 4 {
		t.Errorf("%d leaves are published, want 4", got)
	}
}

// What a pass needed is needed still if the pass fails, or if the caller that ran it leaves.
func TestAPassThatFailsLeavesItsNeedsToTheNext(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	f := newFollower(t, h, newStore(t, h))
	h.block(1, h.transact())
	must(t, f.Sync(t.Context(), 0))
	h.gate = make(chan struct{})
	cancelled, cancel := context.WithCancel(t.Context())
	f.Notice(0)
	left := make(chan error)
	go func() { left <- f.Sync(cancelled, 3) }()
	eventually(t, "the pass reads the tree", func() bool { h.mu.Lock(); defer h.mu.Unlock(); return h.treeReads == 2 })
	cancel()
	if err := <-left; err == nil {
		t.Fatal("a pass whose caller has left succeeds")
	}
	h.mu.Lock()
	h.gate = nil
	h.mu.Unlock()
	must(t, f.Sync(t.Context(), 7))
	if h.minSlot != 7 || h.maxAge != 0 {
		t.Errorf("the tree is asked for slot %d, at most %s old; want slot 7, read anew, because of the notice", h.minSlot, h.maxAge)
	}
}

// Leaves are removed only if a tree that was read after their blocks contradicts them.
func TestLeavesAreComparedWithATreeThatIsReadAfterThem(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	f := newFollower(t, h, newStore(t, h))
	h.block(1, h.transact())
	must(t, f.Sync(t.Context(), 1))
	h.block(2, h.transact())
	h.old = copyOf(h.tree) // what a read that may be older returns
	h.block(3, h.transact())
	must(t, f.Sync(t.Context(), 3))
	if got := f.Status(); !got.Verified || got.Published != 6 {
		t.Errorf("the status is %+v, want 6 leaves, verified", got)
	}
}
