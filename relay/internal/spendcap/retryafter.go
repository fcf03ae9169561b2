package spendcap

import (
	"fmt"
	"time"

	"github.com/relaypool/relaypool/relay/refusal"
)

// timeUntilFree returns the time until at least over lamports have left the window. ok
// is false when the window has less than that.
func (w window) timeUntilFree(over uint64) (wait time.Duration, ok bool) {
	for _, p := range w.parts {
		if p.lamports >= over {
			return p.leavesIn, true
		}
		over -= p.lamports
	}
	return 0, false
}

func (s *spendCap) refusal(lamports uint64) error {
	spent := s.window.spent + s.pending
	over := spent + lamports - s.limit
	wait, ok := s.window.timeUntilFree(over)
	if !ok {
		wait = maxRetry
	}
	return refusal.New(refusal.SpendCapReached,
		"%s: send the same request again later; the operator can raise the cap", s.description).
		Retry(min(max(wait, minRetry), maxRetry)).
		Because(fmt.Errorf("the cap %s is %d lamports: %d are spent and %d were requested", s.name, s.limit, spent, lamports))
}
