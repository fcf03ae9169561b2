package ledger

import (
	"context"
	"time"
)

// gap is the payer's gain or loss where history is missing.
type gap struct {
	slot    uint64
	missing int64
}

// waitedTooLong reports whether a gap has lasted long enough to skip it.
func (t *track) waitedTooLong(now time.Time, patience time.Duration) bool {
	return !t.since.IsZero() && now.Sub(t.since) >= patience
}

// reportDoubts logs once that the history does not add up, and once that it does again or
// that the gap was skipped.
func (r *Reconciler) reportDoubts(ctx context.Context, t *track, b *balance) {
	if b.doubt != "" && t.since.IsZero() {
		t.since = b.now
		r.Log.WarnContext(ctx, "fee payer history does not add up; reading it again", "payer", t.payer, "slot", b.doubtSlot, "reason", b.doubt)
	}
	if b.doubt == "" && b.clean && !t.since.IsZero() {
		t.since = time.Time{}
		r.Log.InfoContext(ctx, "fee payer accounting recomputed", "payer", t.payer)
	}
}
