package ledger

import (
	"context"
	"time"
)

const defaultGapTimeout = 10 * time.Minute

// gap is a place where history is missing, in the slot or before it. missing is what the payer
// gained by the missing transactions, in lamports; negative for a loss.
type gap struct {
	slot    uint64
	missing int64
}

const (
	problemMissing = "no endpoint knows a transaction that the history lists"
	problemGap     = "the balance before the slot differs from the balance after the previous slot"
)

// checkGap reports whether the slot s is to be added. found is the number of the slot's payments
// that an endpoint knows. If history is missing and gaps are not accepted, checkGap sets problem.
// If gaps are accepted, the slot is skipped, or added with a gap.
func (b *accumulator) checkGap(s slot, found int, consistent bool) (add bool) {
	complete := found == len(s.payments)
	switch {
	case complete && consistent:
		b.gapless = true
		return true
	case !b.acceptGap && !complete:
		b.problem, b.problemSlot = problemMissing, s.number
		return false
	case !b.acceptGap:
		b.problem, b.problemSlot = problemGap, s.number
		return false
	case b.cursor == nil, found == 0:
		// Without a cursor, the ledger starts after the missing history. With a cursor, the
		// balance before the next slot shows how much is missing.
		b.lastSlot, b.gapless = s.number, false
		return false
	default:
		b.gapless = false
		return true
	}
}

// addGap records a gap in the cursor's sums.
func (b *accumulator) addGap(slot uint64, missing int64) {
	b.gaps = append(b.gaps, gap{slot, missing})
	b.cursor.Gaps++
	b.cursor.Missing += missing
}

// gapTimedOut reports whether history has been missing for so long that the gap is accepted.
func (h *payerHistory) gapTimedOut(now time.Time, timeout time.Duration) bool {
	return !h.gapSince.IsZero() && now.Sub(h.gapSince) >= timeout
}

// forgetGap forgets a gap that another process has read beyond, so that it does not count for a later one.
func (h *payerHistory) forgetGap(cursor *Cursor) {
	if cursor != nil && cursor.Slot >= h.gapSlot && cursor.Slot != h.writtenTo {
		h.gapSince = time.Time{}
	}
}

// reportProblems logs once when the history does not add up, and once when it adds up again. After
// a skipped gap it also counts as adding up again.
func (r *Reconciler) reportProblems(ctx context.Context, h *payerHistory, b *accumulator) {
	if b.problem != "" && h.gapSince.IsZero() {
		h.gapSince, h.gapSlot = b.now, b.problemSlot
		r.Log.WarnContext(ctx, "fee payer history does not add up; reading it again", "payer", h.payer, "slot", b.problemSlot, "reason", b.problem)
	}
	if b.problem == "" && b.gapless && !h.gapSince.IsZero() {
		h.gapSince = time.Time{}
		r.Log.InfoContext(ctx, "fee payer accounting recomputed", "payer", h.payer)
	}
}

// reportGaps counts and logs the gaps that a step has skipped.
func (r *Reconciler) reportGaps(ctx context.Context, b *accumulator) {
	for _, g := range b.gaps {
		r.Observer.GapSkipped()
		r.Log.ErrorContext(ctx, "gap in a fee payer's history skipped: no endpoint has the transactions; an archive endpoint might", "payer", b.payer, "slot", g.slot, "lamports_gained", g.missing)
	}
}
