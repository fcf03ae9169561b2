package txmgr

import (
	"errors"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
)

// These are the manager's own reasons for deferring a job. Other reasons are codes of
// refusals, classes of program errors, and the handlers' own.
const (
	// HoldHistory: an attempt cannot land any more, and no endpoint's history goes back far
	// enough to show whether the attempt has landed. An endpoint with the role archive has a
	// longer history.
	HoldHistory = "chain_history"
	// HoldExpiry: an attempt that was signed long ago is not on the chain, and the endpoints have
	// not agreed that it has expired.
	HoldExpiry = "chain_expiry"
	// HoldSigner: the keys of all payers that could pay are in key services that do not sign now.
	HoldSigner = "signer_unavailable"
	// HoldChain: the chain does not answer.
	HoldChain = string(refusal.ChainUnavailable)
)

// ErrSignerUnavailable is the error of a payer whose key is in a service that does not sign now.
var ErrSignerUnavailable = errors.New("the fee payer's signer is not available")

// Deferral is the error of a job that is tried again later.
type Deferral struct {
	// Reason is one of a fixed set, because it is the label of a metric. It is also stored.
	Reason string
	// Delay is the time until the next try; 0 means Timing.Hold.
	Delay time.Duration
	Cause error
	// Fault is true if the deployment, not the job, causes the delay. The deferral is then
	// counted, and logged as a warning when it begins.
	Fault bool
	// pausesQueue is true if all jobs of the main queue have to wait for the same reason.
	pausesQueue bool
}

// Error returns the reason and the cause.
func (d *Deferral) Error() string { return "waiting: " + d.Reason + ": " + d.Cause.Error() }

// Unwrap returns the cause.
func (d *Deferral) Unwrap() error { return d.Cause }

// triesBeforeHold is the number of failures in a row from which on failed calls to the chain count
// as an outage. A single failed call only causes a retry.
const triesBeforeHold = 3

// Refused returns a deferral if err is the refusal of a pool, chain, cap or payer that is not
// ready, or if no payer's signer is available. It returns other errors as they are. It also returns
// chain_unavailable as it is, until the job has had triesBeforeHold failed tries. An empty payer,
// an uninitialised pool or the lack of a signer pauses the queue. A spend cap does not pause the
// queue, because the cap may apply to transfers alone. A failed call does not pause it either,
// because the next call may succeed.
func Refused(j *Job, err error) error {
	r, ok := refusal.As(err)
	pausable := j.queue == nil || j.queue.pausable()
	switch {
	case errors.Is(err, ErrSignerUnavailable):
		return &Deferral{Reason: HoldSigner, Cause: err, Fault: true, pausesQueue: pausable}
	case !ok || r.Code == refusal.DatabaseUnavailable:
		return err
	case r.Code == refusal.ChainUnavailable && j.Tries < triesBeforeHold:
		return err
	default:
		pausesQueue := pausable && (r.Code == refusal.FeePayerEmpty || r.Code == refusal.PoolNotInitialised)
		return &Deferral{Reason: string(r.Code), Cause: err, Fault: true, pausesQueue: pausesQueue}
	}
}

// Unreachable returns a deferral for a failed call to the chain, once the job has had
// triesBeforeHold failed tries. For fewer tries and for other errors it returns err itself.
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
