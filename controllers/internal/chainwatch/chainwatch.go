// Package chainwatch reads the chain for every RelayPool, outside of the
// reconcile: the pool's accounts and the fee payers' balances, in one call a
// check. It keeps the last good reading of each with its age, and tells the
// reconciler only when something that a status shows has changed.
package chainwatch

import (
	"context"
	"reflect"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/poolcheck"
)

// Endpoint is one RPC server of a RelayPool.
type Endpoint struct {
	// Name is what errors and logs call it.
	Name string
	// Identity changes when the URL may have: of an inline URL the URL's own hash,
	// of one in a Secret the Secret's name, key and resource version, say. It is
	// compared and never shown.
	Identity string
	// URL gives the URL at the time of a check. Its errors are shown: they name
	// Secret and key, and hold nothing of the value.
	URL func(ctx context.Context) (string, error)
}

// Query is what to read for one RelayPool. It is not changed once it was handed over.
type Query struct {
	// Target is the pool. Its Extra is not used: see Payers.
	Target poolcheck.Target
	// Endpoints that read, in the order in which they are tried.
	Endpoints []Endpoint
	// Finalized reads at that commitment rather than at confirmed.
	Finalized bool
	// Interval between checks, give or take a tenth. 0 is a minute.
	Interval time.Duration
	// Payers are the addresses whose balances are read: of active keys as of retired ones.
	Payers []solana.PublicKey
	// Thresholds, in lamports, are balances whose crossing the reconciler is told
	// of: the minimum and the target.
	Thresholds []uint64
}

// Payer is what is known of one fee payer.
type Payer struct {
	// Lamports as of At, which is zero while the balance was never read.
	Lamports uint64
	At       time.Time
	// Spending is lamports an hour, from the balance's own history of the last hour,
	// additions left out; 0 while nothing is spent. Known is false while there is too
	// little of a history to tell.
	Spending uint64
	Known    bool
}

// Runway is how long the balance lasts at the recent rate of spending; ok is
// false while nothing is spent or the rate is not known.
func (p Payer) Runway() (d time.Duration, ok bool) {
	const longest = 100 * 365 * 24 // hours; a time.Duration holds three times as many
	if !p.Known || p.Spending == 0 {
		return 0, false
	}
	hours := float64(p.Lamports) / float64(p.Spending)
	return time.Duration(min(hours, longest) * float64(time.Hour)), true
}

// Reading is what is known of one RelayPool. It is shared: do not change it.
type Reading struct {
	// Target is the pool that the report is of. A RelayPool whose spec has changed
	// since declares another: the reading says nothing of that one.
	Target poolcheck.Target
	// Report is that of the last good check, made At. At is zero, and the report
	// empty, while there was none.
	Report poolcheck.Report
	At     time.Time
	// Since is when the chain became unavailable: no endpoint answers, or none of
	// the declared chain. Zero while it is not. Why says, for a person, what each
	// endpoint did, and stays the same for as long as the chain is unavailable.
	Since time.Time
	Why   string
	// Payers have an entry for each address of the query whose balance was read at
	// least once.
	Payers map[solana.PublicKey]Payer
}

// Of gives what the reading tells of another target, which is nothing of the pool
// when it is another one, and nothing of balances either when it is on another
// chain.
func (r *Reading) Of(target poolcheck.Target) Reading {
	switch {
	case sameTarget(r.Target, target):
		return *r
	case r.Target.Genesis == target.Genesis:
		return Reading{Target: target, Payers: r.Payers}
	default:
		return Reading{Target: target}
	}
}

// sameTarget compares all but Extra, which queries do not use.
func sameTarget(a, b poolcheck.Target) bool {
	a.Extra, b.Extra = nil, nil
	return reflect.DeepEqual(a, b)
}

// Pool is the reading in one state, reason and message, for the condition
// PoolInitialised: unknown while the chain is unavailable, whatever was read
// before.
func (r *Reading) Pool() (state poolcheck.State, reason poolcheck.Reason, message string) {
	if !r.Since.IsZero() {
		return poolcheck.Unknown, poolcheck.ReasonChainUnavailable, r.Why
	}
	state, reason, _ = r.Report.Summary()
	return state, reason, r.Report.Message()
}
