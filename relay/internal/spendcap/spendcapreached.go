package spendcap

import (
	"fmt"
	"time"

	"github.com/relaypool/relaypool/relay/refusal"
)

// The refusal asks for a pause between minRetry and maxRetry.
const (
	minRetry = time.Second
	maxRetry = time.Hour
)

// timeUntilFree returns the time until at least excess lamports have left the window. ok is
// false when the window has fewer than excess lamports.
func (w window) timeUntilFree(excess uint64) (wait time.Duration, ok bool) {
	for _, p := range w.parts {
		if p.lamports >= excess {
			return p.leavesIn, true
		}
		excess -= p.lamports
	}
	return 0, false
}

func (s *spendCap) refusal(lamports uint64) error {
	spent := s.window.spent + s.pending
	excess := spent + lamports - s.limit
	wait, ok := s.window.timeUntilFree(excess)
	switch {
	case s.window.spent+lamports <= s.limit:
		wait = minRetry // what is pending may not be spent
	case !ok:
		wait = maxRetry
	}
	return refusal.New(refusal.SpendCapReached,
		"%s: send the same request again later; the operator can raise the cap", s.description).
		Retry(min(max(wait, minRetry), maxRetry)).
		Because(fmt.Errorf("the cap %s is %d lamports: %d are spent and %d were requested", s.name, s.limit, spent, lamports))
}
