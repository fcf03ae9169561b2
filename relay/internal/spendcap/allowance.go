package spendcap

import (
	"context"
	"slices"
	"time"
)

// recordDelay is the time from the end of an allowance until the database's sum of the spending
// contains the attempt for certain. If the database's answer was lost, the database may commit the
// attempt a little later than the allowance ended.
const recordDelay = 500 * time.Millisecond

// allowance is an amount that this process may spend, or may have spent since the sum was
// read.
type allowance struct {
	transfer bool
	lamports uint64
	// ended is when the allowance ended with an attempt that may have been recorded; zero before.
	ended time.Time
}

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

// endAllowance ends an allowance. If the attempt may have been recorded, the allowance counts until
// the database's sum contains the attempt. If the attempt was not recorded, the allowance stops
// counting immediately.
func (c *Caps) endAllowance(a *allowance, mayBeRecorded bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.allowances, a)
	switch {
	case i < 0 || !a.ended.IsZero():
	case mayBeRecorded:
		a.ended = c.now()
	default:
		c.allowances = slices.Delete(c.allowances, i, i+1)
		for _, s := range c.caps {
			if a.transfer || !s.transfersOnly {
				s.pending -= a.lamports
			}
		}
	}
}

// count adds an allowance to the caps that apply to it. The caller has locked mu.
func (c *Caps) count(a *allowance) {
	c.allowances = append(c.allowances, a)
	for _, s := range c.caps {
		if a.transfer || !s.transfersOnly {
			s.pending += a.lamports
		}
	}
}
