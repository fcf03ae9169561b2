package swap

import "time"

const (
	// A delay is a quarter of the swap's age, but at least minWait and at most maxWait. A price
	// that recovers soon is then noticed soon, and a price that stays low costs few requests.
	minWait, maxWait = 500 * time.Millisecond, 8 * time.Second
	// shortWait is the longest delay after a draft that would have failed: a price that has just
	// got worse may soon recover.
	shortWait = 2 * time.Second
)

// delay returns how long to defer a swap of the given age. The delay is at most atMost, except
// that the router can ask for a longer one, atLeast. slotsLeft is the number of slots until the
// timeout; 0 if the timeout has passed or is not known. The delay ends at most one slot after
// the timeout.
func delay(age, atLeast, atMost time.Duration, slotsLeft uint64, slot time.Duration) time.Duration {
	d := max(min(max(age/4, minWait), atMost), atLeast)
	if slotsLeft > 0 && slotsLeft < uint64(maxSlotsLeft) {
		d = min(d, time.Duration(slotsLeft+1)*slot)
	}
	return d
}

// maxSlotsLeft is more slots than any delay takes. A larger number is not converted to a
// duration, because the duration could overflow.
const maxSlotsLeft = 1 << 20
