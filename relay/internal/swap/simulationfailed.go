package swap

import (
	"fmt"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Rejected returns the *txmgr.Deferral of a second leg whose draft would fail, and remembers
// what to try instead.
func (s *Planner) Rejected(c *submission.Submission, d *txmgr.Draft, f *txmgr.Failure) error {
	failure := f.Err
	// The snapshot has no slot and no timeout, so the timeout does not shorten the wait.
	r := &snapshot{submission: c}
	cause := fmt.Errorf("try %s: %w", d.Purpose, failure)
	if isGone(failure) {
		// Somebody else ended the swap: the next pass reads the history.
		return s.deferFor(r, ReasonStateMissing, cause, minWait)
	}
	if d.Purpose == txmgr.PurposeExecute {
		if failure.Custom != shieldpool.CodeSlippage || failure.Detail != custom {
			// The price is not the cause, so the same route would fail again.
			s.remember(r, func(k *swapNotes) {
				// Each router has its turn before narrower routes are asked for.
				if k.failed++; k.failed%s.routers == 0 {
					k.level = (k.level + 1) % len(routeWidths())
				}
			})
		}
		return s.deferFor(r, ReasonExecutionFailed, cause, shortWait)
	}
	if failure.Detail == custom && failure.Custom == shieldpool.CodeSwapNotReady {
		// Either the simulating node is a slot or two behind, or the endpoint that reported
		// the slot is far ahead.
		s.remember(r, func(k *swapNotes) { k.refusedAsEarly = s.now() })
		return s.deferFor(r, ReasonTimeoutNotReached, cause, shortWait)
	}
	// The lamports may have been wrapped or unwrapped since the snapshot, or the
	// program may judge their form differently. The next refund has the other form.
	s.remember(r, func(k *swapNotes) { k.otherForm = !k.otherForm })
	return s.deferFor(r, ReasonRefundFailed, cause, shortWait)
}

// custom is the detail of an error that has a program's own code.
const custom = "Custom"

// isGone reports whether a transaction failed because the swap state does not exist.
func isGone(failure *shieldpool.TransactionError) bool {
	return failure.Detail == "UninitializedAccount"
}
