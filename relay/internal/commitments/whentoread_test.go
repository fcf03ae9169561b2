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
	must(t, f.Sync(t.Context(), 7))
	check("another process has stored the blocks up to slot 12", 12, true)
	if got := f.Status().Published; got != 4 {
		t.Errorf("%d leaves are published, want 4", got)
	}
}
