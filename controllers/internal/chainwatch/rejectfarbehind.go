package chainwatch

import (
	"errors"
	"time"
)

// maxSlotsBehind is how many slots an answer may be behind the last good answer, because two
// endpoints are never quite at the same slot. An answer that is further behind is rejected while
// the last good answer is younger than slotMaxAge. Without this limit of time, one wrong slot, far
// too high, would make all later answers count as behind.
const (
	maxSlotsBehind = 150
	slotMaxAge     = 2 * time.Minute
)

var errBehind = errors.New("is far behind the slot that was read before, and is not used until it has caught up")

// rejectFarBehind returns errBehind for an answer of a slot that is far behind. If every endpoint's
// answer is rejected or missing, the check fails, as when no endpoint answers.
func (c *checker) rejectFarBehind(slot uint64) error {
	if slot+maxSlotsBehind < c.slot && c.now().Sub(c.slotAt) < slotMaxAge {
		return errBehind
	}
	return nil
}
