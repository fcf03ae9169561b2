package spendcap

import (
	"slices"
	"time"
)

// recordDelay is how long an attempt may be missing from the sum after its
// allowance ended: the database may commit it although the answer was lost.
const recordDelay = 500 * time.Millisecond

// allowance is an amount that this process may spend, or may have spent since the sum was
// read.
type allowance struct {
	transfer bool
	lamports uint64
	// ended is when its attempt was recorded; zero before.
	ended time.Time
}

// endAllowance ends an allowance. Without a recorded attempt, it is no longer counted.
func (c *Caps) endAllowance(a *allowance, recorded bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.allowances, a)
	switch {
	case i < 0 || !a.ended.IsZero():
	case recorded:
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

// count adds an allowance. The caller holds the lock.
func (c *Caps) count(a *allowance) {
	c.allowances = append(c.allowances, a)
	for _, s := range c.caps {
		if a.transfer || !s.transfersOnly {
			s.pending += a.lamports
		}
	}
}
