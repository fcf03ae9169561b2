package spendcap

import (
	"context"
	"slices"
	"time"
)

const (
	// sumAge is the maximum age of the fleet's sum. The sum does not contain what other processes
	// have spent since it was read, so caps may be exceeded by that amount.
	sumAge = 2 * time.Second
	// readTimeout ends a hanging read, because all callers wait for the read.
	readTimeout = 5 * time.Second
)

// ensureFresh makes sure that the sum is at most sumAge old.
func (c *Caps) ensureFresh(ctx context.Context) error {
	c.mu.Lock()
	fresh := !c.sumReadAt.IsZero() && c.now().Sub(c.sumReadAt) < sumAge
	c.mu.Unlock()
	if fresh {
		return nil
	}
	// The read serves all waiting callers, so it continues when one of them is
	// cancelled.
	done := c.flight.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		defer cancel()
		return nil, c.readSum(ctx)
	})
	select {
	case <-ctx.Done():
		return ctx.Err()
	case r := <-done:
		return r.Err
	}
}

// readSum reads the fleet's spending, and drops the allowances that the spending contains.
func (c *Caps) readSum(ctx context.Context) error {
	began := c.now()
	buckets, err := c.store.SpendBuckets(ctx, BucketsKept)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.sumReadAt = began
	kept := slices.DeleteFunc(c.allowances, func(a *allowance) bool { return !a.ended.IsZero() && a.ended.Before(began.Add(-recordDelay)) })
	c.allowances = nil
	var lifted []spendCap
	for _, s := range c.caps {
		s.window, s.pending = sum(buckets, s.length, s.transfersOnly), 0
	}
	for _, a := range kept {
		c.count(a)
	}
	for _, s := range c.caps {
		if s.lastRefused > 0 && s.window.spent+s.pending+s.lastRefused <= s.limit {
			s.lastRefused = 0
			lifted = append(lifted, *s)
		}
	}
	c.mu.Unlock()
	for i := range lifted {
		c.log.InfoContext(ctx, "spending below the cap again", "cap", lifted[i].name, "spent", lifted[i].window.spent, "limit", lifted[i].limit)
	}
	return nil
}
