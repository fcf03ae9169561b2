package feepayer

import (
	"slices"
	"time"
)

// slotMaxAge is how long a reading's slot rules out readings at lower slots. A node that
// once reported a false slot must not make all later readings count as old.
const slotMaxAge = 2 * time.Minute

// reading is one reading of a payer's balance.
type reading struct {
	lamports, slot uint64
	// began is when the call was made: the reading shows nothing that happened later.
	began time.Time
	// fromTwo is set when the balance is the higher one of two endpoints, if there are two.
	fromTwo bool
}

// update replaces the last good reading by n, unless n is older or unconfirmed. A first balance
// below the minimum, or a fall from the minimum or more to less, is unconfirmed if this process's
// own spending does not explain it, and n is the first reading that shows it or comes from only one
// endpoint.
func (a *account) update(n reading, minimum uint64) (unconfirmed bool) {
	if a.known && n.slot < a.slot && n.began.Sub(a.at) < slotMaxAge {
		return false // this node is behind the node that gave the last good reading
	}
	fell := n.lamports < minimum && (!a.known || a.lamports >= minimum)
	explained := a.known && n.lamports >= a.free()
	if fell && !explained && (!a.unconfirmed || !n.fromTwo) {
		a.unconfirmed = true
		return true
	}
	a.unconfirmed = false
	a.known, a.lamports, a.slot, a.at = true, n.lamports, n.slot, n.began
	a.releasedCosts = slices.DeleteFunc(a.releasedCosts, func(e expense) bool {
		shown := e.at.Before(n.began)
		if shown {
			a.releasedSum -= e.lamports
		}
		return shown
	})
	if n.lamports >= minimum {
		a.breaker.closeIfFunded(n)
	}
	return false
}
