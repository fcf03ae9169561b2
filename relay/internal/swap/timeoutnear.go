package swap

import (
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
)

// No execution starts within lastTime before the timeout, nor in the last minLastSlots before
// it. Such an execution would hardly land in time, and the refund would have to wait until the
// execution has expired. Besides, a confirmed slot is a few slots behind the chain's newest one.
// On a chain with short slots, maxLastSlots limits the number of slots in lastTime.
const (
	lastTime                   = 1600 * time.Millisecond
	minLastSlots, maxLastSlots = 4, 16
)

// lastSlots is the number of slots before the timeout in which no execution starts.
func lastSlots(slot time.Duration) uint64 {
	return min(max(onchain.SlotsIn(lastTime, slot), minLastSlots), maxLastSlots)
}

// timeoutNear reports whether the timeout is so near that no execution starts.
func (f *facts) timeoutNear() bool { return f.slot+f.lastSlots >= f.timeout }

// urgentSlots is how many slots before the timeout an execution counts as urgent. It is half the
// life of a blockhash: later there may be no time for another attempt.
const urgentSlots = 75

// urgent reports whether an execution counts as urgent at the slot.
func urgent(slot, timeout uint64) bool { return slot+urgentSlots >= timeout }
