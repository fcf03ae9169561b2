package store

import "testing"

func TestWrongHighestTreeSlotIsReplacedAfterAMinute(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	wantSlot := func(when string, want uint64) {
		t.Helper()
		if got, err := s.HighestTreeSlot(ctx, testPool); err != nil || got != want {
			t.Errorf("%s: the highest slot is %d (%v), want %d", when, got, err, want)
		}
	}
	ok(t, s.RecordTreeSlot(ctx, testPool, 1_000_000))
	ok(t, s.RecordTreeSlot(ctx, testPool, 100))
	wantSlot("at once", 1_000_000)
	exec(t, s, `UPDATE sightings SET seen_at = seen_at - interval '61 seconds'`)
	ok(t, s.RecordTreeSlot(ctx, testPool, 101))
	wantSlot("a minute later", 101)
	ok(t, s.RecordTreeSlot(ctx, testPool, 99))
	wantSlot("after a node that lags", 101)
}
