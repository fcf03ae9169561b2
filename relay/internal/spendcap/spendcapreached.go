package spendcap

import (
	"context"
	"fmt"
	"time"

	"github.com/relaypool/relaypool/relay/refusal"
)

// The refusal asks for a pause between minRetry and maxRetry.
const (
	minRetry = time.Second
	maxRetry = time.Hour
)

// check refuses an amount that exceeds a cap. If the amount exceeds no cap, check counts the
// allowance a, unless a is nil.
func (c *Caps) check(ctx context.Context, transfer bool, lamports uint64, a *allowance) error {
	if c.limits == (Limits{}) {
		return nil
	}
	if err := c.ensureFresh(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	var exceeded *spendCap
	for _, s := range c.caps {
		if s.appliesTo(transfer) && s.window.spent+s.pending+lamports > s.limit {
			exceeded = s
			break
		}
	}
	if exceeded == nil {
		if a != nil {
			c.count(a)
		}
		c.mu.Unlock()
		return nil
	}
	justReached := exceeded.lastRefused == 0
	exceeded.lastRefused = max(lamports, 1)
	copied := *exceeded
	c.mu.Unlock()
	if justReached {
		c.log.WarnContext(ctx, "spend cap reached; attempts that it covers wait until earlier spending leaves its window or the cap is raised",
			"cap", copied.name, "spent", copied.window.spent+copied.pending, "limit", copied.limit)
	}
	return copied.refusal(lamports)
}

func (s *spendCap) appliesTo(transfer bool) bool {
	return s.limit > 0 && (transfer || !s.transfersOnly)
}

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
	if !ok {
		wait = maxRetry
	}
	return refusal.New(refusal.SpendCapReached,
		"%s: send the same request again later; the operator can raise the cap", s.description).
		Retry(min(max(wait, minRetry), maxRetry)).
		Because(fmt.Errorf("the cap %s is %d lamports: %d are spent and %d were requested", s.name, s.limit, spent, lamports))
}
