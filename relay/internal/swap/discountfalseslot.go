package swap

import "time"

// notReachedFor is for how long, after the program refused a refund as too early, the
// planner ignores a slot past the timeout that only one endpoint reports.
const notReachedFor = 10 * time.Second

// discountFalseSlot sets the snapshot's slot back to half the swap timeout before the
// timeout slot, when only one endpoint reports a slot past the timeout and the program
// has just refused a refund as too early. Otherwise an endpoint that is far ahead would
// keep the swap from being executed.
func (s *Planner) discountFalseSlot(r *snapshot) {
	if r.slot < r.timeout || s.chain.Corroborated(r.slot) {
		return
	}
	if refused := s.memory.get(r.submission.ID).refusedAsEarly; !refused.IsZero() && r.at.Sub(refused) < notReachedFor {
		r.slot = r.timeout - min(r.timeout, s.pool.Profile.SwapTimeout/2)
	}
}
