package chainwatch

import (
	"reflect"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/poolcheck"
)

// Payer is what is known of one fee payer.
type Payer struct {
	// Lamports is the balance, and At the time of its reading.
	Lamports uint64
	At       time.Time
	// Spending is in lamports an hour. It is computed from the balance's history of the
	// last hour; an increase counts as no spending. SpendingKnown is false while the history
	// is too short.
	Spending      uint64
	SpendingKnown bool
}

// Reading is what is known of one RelayPool. It is shared: do not change it.
type Reading struct {
	// Target is the pool that the report describes. If the spec has changed since, the
	// RelayPool may declare another pool: see ForTarget.
	Target poolcheck.Target
	// Report is the report of the last good check, and At is its time. Before the first good
	// check both are zero.
	Report poolcheck.Report
	At     time.Time
	// UnavailableSince is when the chain became unavailable: no endpoint gives a usable
	// answer. It is zero while the chain is available. Cause says, for a person, how each
	// endpoint failed. Cause does not change while the chain is unavailable.
	UnavailableSince time.Time
	Cause            string
	// Payers has an entry for each address of the query whose balance was read at
	// least once.
	Payers map[solana.PublicKey]Payer
}

// ForTarget returns the part of the reading that is valid for target. Of a reading of another
// pool on the same chain, only the balances are valid. Of a reading of another chain, nothing
// is valid.
func (r *Reading) ForTarget(target poolcheck.Target) Reading {
	switch {
	case sameTarget(r.Target, target):
		return *r
	case r.Target.Genesis == target.Genesis:
		return Reading{Target: target, Payers: r.Payers}
	default:
		return Reading{Target: target}
	}
}

// sameTarget compares all fields but Extra, which queries do not use.
func sameTarget(a, b poolcheck.Target) bool {
	a.Extra, b.Extra = nil, nil
	return reflect.DeepEqual(a, b)
}

// PoolState returns the reading as one state, reason and message, for the condition
// PoolInitialised. The state is unknown while the chain is unavailable, regardless
// of earlier readings.
func (r *Reading) PoolState() (state poolcheck.State, reason poolcheck.Reason, message string) {
	if !r.UnavailableSince.IsZero() {
		return poolcheck.Unknown, poolcheck.ReasonChainUnavailable, r.Cause
	}
	state, reason, _ = r.Report.Summary()
	return state, reason, r.Report.Message()
}
