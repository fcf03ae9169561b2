package feepayer

import (
	"slices"
	"time"
)

// slotMaxAge is how long a reading's slot rules out readings at lower slots. A node that
// once reported a false slot must not make all later readings count as old.
const slotMaxAge = 2 * time.Minute

// account is one payer. Its methods are called under the lock of Payers.
type account struct {
	key *Key

	// The last good reading; known says that there is one.
	known          bool
	lamports, slot uint64
	at             time.Time
	// unconfirmed: the last reading fell below the minimum and nothing explained it.
	unconfirmed bool

	inFlight int
	reserved uint64
	// released are the costs of attempts whose reservations ended since the reading was
	// made, and unconfirmedSpend is their sum.
	released         []expense
	unconfirmedSpend uint64

	breaker breaker
	empty   bool // as last logged
}

// expense is the sum of the costs released within one second; at is when the last was.
type expense struct {
	at       time.Time
	lamports uint64
}

func (a *account) state(minimum uint64) State {
	switch {
	case !a.known:
		return StateUnknown
	case a.lamports < minimum:
		return StateDry
	case a.breaker.open:
		return StateRefused
	default:
		return StateReady
	}
}

// canPay reports whether an attempt that costs lamports may use the payer now.
func (a *account) canPay(now time.Time, lamports, minimum uint64) bool {
	return a.known && a.free() >= max(lamports, minimum) && a.breaker.allows(now)
}

// before reports whether a is preferred to b as the payer.
func (a *account) before(b *account) bool {
	if a.inFlight != b.inFlight {
		return a.inFlight < b.inFlight
	}
	return a.free() > b.free()
}

// outstanding is what this process may have spent and the reading does not show:
// reservations in flight, and those that ended since the reading.
func (a *account) outstanding() uint64 { return a.reserved + a.unconfirmedSpend }

// usable reports whether the payer is ready, regardless of what it already has to pay.
func (a *account) usable(minimum uint64) bool { return a.state(minimum) == StateReady }

// free is what the payer holds at least, once it has paid all that is outstanding.
func (a *account) free() uint64 { return minus(a.lamports, a.outstanding()) }

func (a *account) reserve(lamports uint64) {
	a.inFlight++
	a.reserved += lamports
	a.breaker.start()
}

// cancel ends a reservation for which nothing was signed, so nothing was spent.
func (a *account) cancel(now time.Time, lamports uint64) {
	if a.inFlight == 0 {
		return
	}
	a.inFlight--
	a.reserved -= min(lamports, a.reserved)
	a.breaker.release(now)
}

func (a *account) release(now time.Time, lamports uint64) {
	if a.inFlight == 0 {
		return // what another process picked is not reserved here
	}
	a.inFlight--
	lamports = min(lamports, a.reserved)
	a.reserved -= lamports
	a.unconfirmedSpend += lamports
	if last := len(a.released) - 1; last >= 0 && a.released[last].at.Truncate(time.Second).Equal(now.Truncate(time.Second)) {
		a.released[last].at = now
		a.released[last].lamports += lamports
	} else {
		a.released = append(a.released, expense{now, lamports})
	}
	a.breaker.release(now)
}

// reading is what one reading shows of a payer.
type reading struct {
	lamports, slot uint64
	// began is when the call was made: the reading shows nothing that happened later.
	began time.Time
	// fromTwo: each balance is the higher of two endpoints' readings, where there are two.
	fromTwo bool
}

// update replaces the last good reading, unless the new one is older or in doubt. doubt
// means that the balance fell below the minimum, that this process's own spending does not
// explain it, and that this reading is the first to say so or comes from one endpoint
// alone.
func (a *account) update(n reading, minimum uint64) (unconfirmed bool) {
	if a.known && n.slot < a.slot && n.began.Sub(a.at) < slotMaxAge {
		return false // this node is behind the one that gave the last good reading
	}
	fell := n.lamports < minimum && (!a.known || a.lamports >= minimum)
	explained := a.known && n.lamports >= a.free()
	if fell && !explained && (!a.unconfirmed || !n.fromTwo) {
		a.unconfirmed = true
		return true
	}
	a.unconfirmed = false
	a.known, a.lamports, a.slot, a.at = true, n.lamports, n.slot, n.began
	a.released = slices.DeleteFunc(a.released, func(e expense) bool {
		seen := e.at.Before(n.began)
		if seen {
			a.unconfirmedSpend -= e.lamports
		}
		return seen
	})
	if n.lamports >= minimum {
		a.breaker.closeIfFunded(n)
	}
	return false
}

// minus is a - b, or 0 when b is larger.
func minus(a, b uint64) uint64 {
	if b > a {
		return 0
	}
	return a - b
}
