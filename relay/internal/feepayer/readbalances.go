package feepayer

import (
	"context"
	"fmt"
	"slices"
	"time"
)

const (
	defaultInterval = 15 * time.Second
	// unusableInterval is the time between two reads while some payer cannot be used. It is
	// short, so that funding is noticed soon.
	unusableInterval = 2 * time.Second
	// minInterval is the least time between two reads on demand. Without it, every request would
	// cause a call to the chain while the payers are empty.
	minInterval = time.Second
	// readTimeout ends a read that hangs, because all other reads wait for it.
	readTimeout = 10 * time.Second
)

// Run reads the balances immediately, and then every Interval until ctx ends. While a payer cannot
// be used, it reads them every 2 s.
func (p *Payers) Run(ctx context.Context) {
	for {
		_ = p.Refresh(ctx) // Refresh logs errors, and keeps the last good values
		if !p.wait(ctx) {
			return
		}
	}
}

// wait waits until the next read is due. It returns false when ctx ended first.
func (p *Payers) wait(ctx context.Context) bool {
	timer := time.NewTimer(p.untilNextRead())
	defer timer.Stop()
	soon := p.readNow
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case <-soon:
			soon = nil
			timer.Reset(minInterval)
		}
	}
}

// untilNextRead returns the time until the next read.
func (p *Payers) untilNextRead() time.Duration {
	if p.anyUnusable() {
		return min(unusableInterval, p.interval)
	}
	return p.interval
}

// anyUnusable reports whether some payer cannot be used, or its last reading is unconfirmed.
func (p *Payers) anyUnusable() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.accounts, func(a *account) bool { return a.unconfirmed || !a.usable(p.minBalance) })
}

// readSoon makes Run read within a second.
func (p *Payers) readSoon() {
	select {
	case p.readNow <- struct{}{}:
	default:
	}
}

// Refresh reads all balances now; concurrent callers share one read. When the reader fails,
// Refresh returns its error, and the last good balances stay.
func (p *Payers) Refresh(ctx context.Context) error {
	// The read serves all waiting callers, so it outlives any one of them.
	done := p.flight.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		defer cancel()
		return nil, p.read(ctx)
	})
	select {
	case <-ctx.Done():
		return ctx.Err()
	case r := <-done:
		return r.Err
	}
}

// refreshOnDemand reads the balances for a caller who would be refused, unless the last read was
// less than a second ago.
func (p *Payers) refreshOnDemand(ctx context.Context) error {
	p.mu.Lock()
	due := p.lastRead.IsZero() || p.now().Sub(p.lastRead) >= minInterval
	p.mu.Unlock()
	if !due {
		return nil
	}
	return p.Refresh(ctx)
}

// read asks one endpoint for the balances. It asks two endpoints if the first answer is
// unconfirmed or a payer cannot be used: an endpoint that reports too little must neither stop the
// relay nor hide that a payer was funded. Only one read runs at a time.
func (p *Payers) read(ctx context.Context) error {
	fromTwo := p.anyUnusable()
	unconfirmed, err := p.readOnce(ctx, fromTwo)
	if unconfirmed && err == nil {
		_, err = p.readOnce(ctx, true)
	}
	p.mu.Lock()
	p.lastRead = p.now()
	p.mu.Unlock()
	return err
}

// readOnce reads all balances at one endpoint, or at two.
func (p *Payers) readOnce(ctx context.Context, fromTwo bool) (unconfirmed bool, err error) {
	began, balances := p.now(), p.balances.Balances
	if fromTwo {
		balances = p.balances.HighestBalances
	}
	lamports, slot, err := balances(ctx, p.keys)
	if err == nil && len(lamports) != len(p.keys) {
		err = fmt.Errorf("the reader returned %d balances for %d fee payers", len(lamports), len(p.keys))
	}
	p.mu.Lock()
	changed := p.failing != (err != nil)
	p.failing = err != nil
	var changes []change
	if err == nil {
		unconfirmed, changes = p.update(lamports, reading{slot: slot, began: began, fromTwo: fromTwo})
	}
	overall := p.overallTransition()
	p.mu.Unlock()
	switch {
	case changed && err != nil:
		p.log.Warn("reading fee payer balances failed; the last good values are kept", "error", err)
	case changed:
		p.log.Info("fee payer balances readable again")
	}
	for _, c := range changes {
		p.logChange(c)
	}
	p.logTransition(overall)
	return unconfirmed, err
}

// update applies one reading to all payers. lamports are in the order of the payers; n has the
// other fields of the reading, which are the same for all. The caller has locked mu.
func (p *Payers) update(lamports []uint64, n reading) (unconfirmed bool, changes []change) {
	for i, a := range p.accounts {
		refused := a.breaker.open
		n.lamports = lamports[i]
		if a.update(n, p.minBalance) {
			unconfirmed = true
		}
		breakerClosed := refused && !a.breaker.open
		if dry := a.state(p.minBalance) == StateDry; dry != a.loggedDry || breakerClosed {
			a.loggedDry = dry
			changes = append(changes, change{payer: p.keys[i], lamports: a.lamports, dry: dry, breakerClosed: breakerClosed})
		}
	}
	return unconfirmed, changes
}
