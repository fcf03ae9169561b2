package txmgr

import (
	"errors"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
)

// Reasons of the manager's own for deferring a job; others are codes of refusals, classes
// of program errors, and the handlers'.
const (
	// HoldHistory: an attempt cannot land any more, and no endpoint's history reaches
	// back far enough to show whether it has landed. An endpoint with a longer history
	// (role archive) ends it.
	HoldHistory = "chain_history"
	// HoldExpiry: an attempt that was signed long ago is not on the chain, and no two
	// endpoints agree that it can no longer land.
	HoldExpiry = "chain_expiry"
	// HoldChain: the chain does not answer.
	HoldChain = string(refusal.ChainUnavailable)
)

// Deferral is why a job is put off.
type Deferral struct {
	// Reason is from a fixed set: it is stored, and a metric's label.
	Reason string
	// Delay is for how long it is put off; 0 for Timing.Hold.
	Delay time.Duration
	Cause error
	// Fault says that the reason is the deployment's, not the job's: it is counted,
	// and a warning when it begins.
	Fault bool
	// pausesQueue says that all jobs of the main lane wait for the same.
	pausesQueue bool
}

// Error gives reason and cause.
func (d *Deferral) Error() string { return "waiting: " + d.Reason + ": " + d.Cause.Error() }

// Unwrap gives the cause.
func (d *Deferral) Unwrap() error { return d.Cause }

// triesBeforeHold is the number of failures in a row to reach the chain after which a job
// counts as held by it rather than as unlucky.
const triesBeforeHold = 3

// Refused distinguishes a pool, chain or payer that is not ready from other errors: the job
// waits for it. A refusal of one job pauses all of them, with two exceptions: a cap, which
// may be that of transfers alone, and a failed call, which says nothing about the next.
func Refused(j *Job, err error) error {
	r, ok := refusal.As(err)
	switch {
	case !ok || r.Code == refusal.DatabaseUnavailable:
		return err
	case r.Code == refusal.ChainUnavailable && j.Tries < triesBeforeHold:
		return err
	default:
		all := (j.lane == nil || j.lane.pausable()) && (r.Code == refusal.FeePayerEmpty || r.Code == refusal.PoolNotInitialised)
		return &Deferral{Reason: string(r.Code), Cause: err, Fault: true, pausesQueue: all}
	}
}

// Unreachable is an error of a call to the chain as a deferral of the job.
func Unreachable(j *Job, err error) error {
	if !errors.Is(err, onchain.ErrUnavailable) || j.Tries < triesBeforeHold {
		return err
	}
	unavailable := (*onchain.Unavailable)(nil)
	if errors.As(err, &unavailable) && unavailable.Kind == onchain.KindUnverified {
		return &Deferral{Reason: HoldSecondEndpoint, Cause: err, Fault: true}
	}
	return &Deferral{Reason: HoldChain, Cause: err, Fault: true}
}
