package swap

import "time"

// ignoreSlotFor is how long, after the program has refused a refund as too early, the planner
// ignores a slot past the timeout that only one endpoint reports.
const ignoreSlotFor = 10 * time.Second

// ignoreFalseSlot corrects the snapshot's slot if it is probably false: only one endpoint
// reports a slot past the timeout, and the program has just refused a refund as too early. The
// corrected slot is half the swap timeout before the timeout slot. Without the correction, an
// endpoint that is far ahead would keep the swap from being executed.
func (s *Planner) ignoreFalseSlot(r *snapshot) {
	if r.slot < r.timeout || s.chain.Corroborated(r.slot) {
		return
	}
	if refused := s.memory.get(r.submission.ID).refusedAsEarly; !refused.IsZero() && r.at.Sub(refused) < ignoreSlotFor {
		r.slot = r.timeout - min(r.timeout, s.pool.Profile.SwapTimeout/2)
	}
}
