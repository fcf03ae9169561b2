package store

import "testing"

func TestASlotThatNoneGoesBeyondGivesWay(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	seen := func(what string, want uint64) {
		t.Helper()
		if got, err := s.HighestTreeSlot(ctx, testPool); err != nil || got != want {
			t.Errorf("%s: the newest slot is %d (%v), want %d", what, got, err, want)
		}
	}
	ok(t, s.RecordTreeSlot(ctx, testPool, 1_000_000))
	ok(t, s.RecordTreeSlot(ctx, testPool, 100))
	seen("at once", 1_000_000)
	exec(t, s, `UPDATE sightings SET seen_at = seen_at - interval '61 seconds'`)
	ok(t, s.RecordTreeSlot(ctx, testPool, 101))
	seen("a minute later", 101)
	ok(t, s.RecordTreeSlot(ctx, testPool, 99))
	seen("after a node that lags", 101)
}
