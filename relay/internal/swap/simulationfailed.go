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
	if stateIsGone(failure) {
		// Somebody else has probably ended the swap. The next pass finds out.
		return s.deferAtMost(r, ReasonStateMissing, cause, minWait)
	}
	if d.Purpose == txmgr.PurposeExecute {
		if failure.Custom != shieldpool.CodeSlippage || failure.Detail != custom {
			// The price is not the cause, so the same route would fail again.
			s.remember(r, func(tries *earlierTries) {
				tries.levels[tries.first] = (tries.levels[tries.first] + 1) % len(routeWidths())
			})
		}
		return s.deferAtMost(r, ReasonExecutionFailed, cause, shortWait)
	}
	if failure.Detail == custom && failure.Custom == shieldpool.CodeSwapNotReady {
		// Either the simulating node is a slot or two behind, or the endpoint that reported
		// the slot is far ahead.
		s.remember(r, func(tries *earlierTries) { tries.refusedAsEarly = s.now() })
		return s.deferAtMost(r, ReasonTimeoutNotReached, cause, shortWait)
	}
	// The lamports may have been wrapped or unwrapped since the snapshot, or the program and
	// the relay may disagree about which they are. The next refund tries the other form.
	s.remember(r, func(tries *earlierTries) { tries.otherForm = !tries.otherForm })
	return s.deferAtMost(r, ReasonRefundFailed, cause, shortWait)
}

// custom is the detail of an error that has a program's own code.
const custom = "Custom"

// stateIsGone reports whether a transaction failed because the swap state does not exist.
func stateIsGone(failure *shieldpool.TransactionError) bool {
	return failure.Detail == "UninitializedAccount"
}
