package ledger

import (
	"context"
	"time"
)

// gap is the payer's gain, negative for a loss, from missing history in or before a slot.
type gap struct {
	slot    uint64
	missing int64
}

// waitedTooLong reports whether a gap has lasted long enough to skip it.
func (t *payerHistory) waitedTooLong(now time.Time, timeout time.Duration) bool {
	return !t.gapSince.IsZero() && now.Sub(t.gapSince) >= timeout
}

// reportProblems logs once that the history does not add up, and once that it does again or
// that the gap was skipped.
func (r *Reconciler) reportProblems(ctx context.Context, t *payerHistory, b *balance) {
	if b.problem != "" && t.gapSince.IsZero() {
		t.gapSince = b.now
		r.Log.WarnContext(ctx, "fee payer history does not add up; reading it again", "payer", t.payer, "slot", b.problemSlot, "reason", b.problem)
	}
	if b.problem == "" && b.gapless && !t.gapSince.IsZero() {
		t.gapSince = time.Time{}
		r.Log.InfoContext(ctx, "fee payer accounting recomputed", "payer", t.payer)
	}
}
