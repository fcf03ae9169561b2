package spendcap

import (
	"slices"
	"time"
)

// recordDelay is how long an ended allowance still counts. If the database's answer was lost, the
// database may commit the attempt a little later than the allowance ended. Until the commit, the
// database's sum of the spending does not contain the attempt.
const recordDelay = 500 * time.Millisecond

// allowance is an amount that this process may spend, or may have spent since the sum was
// read.
type allowance struct {
	transfer bool
	lamports uint64
	// ended is when the attempt was recorded, as far as this process knows; zero before.
	ended time.Time
}

// endAllowance ends an allowance. If its attempt may have been recorded, the allowance counts
// until the database's sum contains the attempt. Otherwise it stops counting immediately.
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

// count adds an allowance to the caps that apply to it. The caller has locked mu.
func (c *Caps) count(a *allowance) {
	c.allowances = append(c.allowances, a)
	for _, s := range c.caps {
		if a.transfer || !s.transfersOnly {
			s.pending += a.lamports
		}
	}
}
