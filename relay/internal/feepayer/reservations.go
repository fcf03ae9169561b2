package feepayer

import (
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// account is one payer. Its methods are called under the lock of Payers.
type account struct {
	key txmgr.Payer

	// The last good reading, if known is set.
	known          bool
	lamports, slot uint64
	at             time.Time
	// unconfirmed is set when the newest reading was not accepted, because it is below the
	// minimum and this process's own spending does not explain the fall.
	unconfirmed bool

	inFlight int
	reserved uint64
	// releasedCosts are the costs of attempts whose reservations ended since the reading was
	// made, and releasedSum is their sum.
	releasedCosts []expense
	releasedSum   uint64

	breaker breaker
	// loggedDry is set when the last logged change is that the payer became dry.
	loggedDry bool
}

// expense is the sum of the costs that were released within one second. Its field at is the
// time of the last of these releases.
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
	case !a.signs():
		return StateSignerUnavailable
	default:
		return StateReady
	}
}

// outstanding returns what this process may have spent since the reading: the reservations in
// flight, and the reservations that ended since the reading.
func (a *account) outstanding() uint64 { return a.reserved + a.releasedSum }

// usable reports whether the payer has funds to work with, regardless of what it already has to
// pay, and of its signer.
func (a *account) usable(minimum uint64) bool {
	state := a.state(minimum)
	return state == StateReady || state == StateSignerUnavailable
}

// signs reports whether the payer's key can sign now. A key in a file always can.
func (a *account) signs() bool {
	remote, ok := a.key.(interface{ Available() bool })
	return !ok || remote.Available()
}

// free returns the lamports that remain when the payer has paid all that is outstanding.
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
		return // another process made the reservation
	}
	a.inFlight--
	lamports = min(lamports, a.reserved)
	a.reserved -= lamports
	a.releasedSum += lamports
	if last := len(a.releasedCosts) - 1; last >= 0 && a.releasedCosts[last].at.Truncate(time.Second).Equal(now.Truncate(time.Second)) {
		a.releasedCosts[last].at = now
		a.releasedCosts[last].lamports += lamports
	} else {
		a.releasedCosts = append(a.releasedCosts, expense{now, lamports})
	}
	a.breaker.release(now)
}

// minus returns a - b, or 0 when b is larger.
func minus(a, b uint64) uint64 {
	if b > a {
		return 0
	}
	return a - b
}

// Cancel ends a reservation of Pick for which nothing was signed, so that nothing can have
// been spent. It ignores a key that is not a payer's.
func (p *Payers) Cancel(key solana.PublicKey, lamports uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a := p.byKey[key]; a != nil {
		a.cancel(p.now(), lamports)
	}
}

// Release ends a reservation of Pick whose attempt landed or expired. Until the next read
// the reserved lamports count as spent. It ignores a key that is not a payer's.
func (p *Payers) Release(key solana.PublicKey, lamports uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a := p.byKey[key]; a != nil {
		a.release(p.now(), lamports)
	}
}
