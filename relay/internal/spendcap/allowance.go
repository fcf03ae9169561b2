package spendcap

import (
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
