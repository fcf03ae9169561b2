package swap

import (
	"fmt"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Rejected returns for how long to defer a second leg whose draft would fail, and remembers
// what to try instead.
func (s *Planner) Rejected(c *submission.Submission, d *txmgr.Draft, f *txmgr.Failure) error {
	failure := f.Err
	// The slots until the timeout are unknown; the purpose shows whether it is past.
	r := &round{c: c}
	cause := fmt.Errorf("try %s: %w", d.Purpose, failure)
	if isGone(failure) {
		// Somebody else ended the swap: the next round reads the history.
		return s.deferFor(r, ReasonStateMissing, cause, minWait)
	}
	if d.Purpose == txmgr.PurposeExecute {
		if failure.Custom != shieldpool.CodeSlippage || failure.Detail != custom {
			// It is not the price, so the same route would fail again.
			s.remember(r, func(k *notes) { k.level = (k.level + 1) % len(routeWidths()) })
		}
		return s.deferFor(r, ReasonExecutionFailed, cause, shortWait)
	}
	if failure.Detail == custom && failure.Custom == shieldpool.CodeSwapNotReady {
		// The node that was asked is a slot or two behind, or the endpoint whose slot was
		// read is far ahead.
		s.remember(r, func(k *notes) { k.notReached = s.now() })
		return s.deferFor(r, ReasonTimeoutNotReached, cause, shortWait)
	}
	// The lamports may have been wrapped or unwrapped, or the program may disagree.
	s.remember(r, func(k *notes) { k.other = !k.other })
	return s.deferFor(r, ReasonRefundFailed, cause, shortWait)
}

// custom is the detail of an error with a program's own code.
const custom = "Custom"

// isGone reports whether a transaction failed because the swap state is not there.
func isGone(failure *shieldpool.TransactionError) bool {
	return failure.Detail == "UninitializedAccount"
}
