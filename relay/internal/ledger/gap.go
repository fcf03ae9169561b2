package ledger

import (
	"context"
	"time"
)

const defaultGapTimeout = 10 * time.Minute

// gap is the payer's gain, negative for a loss, from missing history in or before a slot.
type gap struct {
	slot    uint64
	missing int64
}

// gapTimedOut reports whether a gap has lasted long enough to skip it.
func (h *payerHistory) gapTimedOut(now time.Time, timeout time.Duration) bool {
	return !h.gapSince.IsZero() && now.Sub(h.gapSince) >= timeout
}

// reportProblems logs once when the history does not add up, and once when it adds up
// again or the gap was skipped.
func (r *Reconciler) reportProblems(ctx context.Context, h *payerHistory, b *accumulator) {
	if b.problem != "" && h.gapSince.IsZero() {
		h.gapSince = b.now
		r.Log.WarnContext(ctx, "fee payer history does not add up; reading it again", "payer", h.payer, "slot", b.problemSlot, "reason", b.problem)
	}
	if b.problem == "" && b.gapless && !h.gapSince.IsZero() {
		h.gapSince = time.Time{}
		r.Log.InfoContext(ctx, "fee payer accounting recomputed", "payer", h.payer)
	}
}
