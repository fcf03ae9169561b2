package feepayer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// Pick chooses who pays for an attempt that costs at most lamports, fees and rent together.
// It counts the attempt as in flight and reserves the cost until Release or Cancel. A payer
// qualifies if its free balance before the payment is at least the cost and at least the
// minimum. Among these payers Pick prefers those with the fewest attempts in flight, because
// transactions that write the same account do not run in parallel on the chain. Among equals
// Pick takes the payer that has the most free lamports.
//
// Payers whose signers are not available are passed over. When only such payers could pay, the
// error is a txmgr.ErrSignerUnavailable; Ready does not ask for signers, because accepted work can
// wait for them.
//
// Before refusing, Pick reads the balances again, at most once a second. Refusals:
// fee_payer_empty when none can pay, chain_unavailable when no balance has ever been read.
//
// Set endsWork for a transaction that finishes work already begun, such as the second leg of a
// swap; see minimumFor.
func (p *Payers) Pick(ctx context.Context, lamports uint64, endsWork bool) (txmgr.Payer, error) {
	minimum := p.minimumFor(lamports, endsWork)
	if a, _ := p.reserve(lamports, minimum); a != nil {
		return a.key, nil
	}
	err := p.refreshOnDemand(ctx)
	a, unsigned := p.reserve(lamports, minimum)
	switch {
	case a != nil:
		return a.key, nil
	case unsigned:
		return nil, fmt.Errorf("%w: no fee payer that could pay can sign", txmgr.ErrSignerUnavailable)
	default:
		return nil, p.refuse(lamports, err)
	}
}

// Ready checks that some payer could pay the amount now, with the same reads and refusals as
// Pick. It reserves nothing.
func (p *Payers) Ready(ctx context.Context, lamports uint64) error {
	if p.canSpend(lamports) {
		return nil
	}
	err := p.refreshOnDemand(ctx)
	if p.canSpend(lamports) {
		return nil
	}
	return p.refuse(lamports, err)
}

// reserve reserves lamports with the preferred payer, or returns nil when none can pay. unsigned is
// true if some payer could pay and cannot sign.
func (p *Payers) reserve(lamports, minimum uint64) (best *account, unsigned bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	for _, a := range p.accounts {
		switch {
		case !a.canPay(now, lamports, minimum):
		case !a.signs():
			unsigned = true
		case best == nil || a.preferredTo(best):
			best = a
		}
	}
	if best != nil {
		best.reserve(lamports)
	}
	return best, unsigned
}

func (p *Payers) canSpend(lamports uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	return slices.ContainsFunc(p.accounts, func(a *account) bool { return a.canPay(now, lamports, p.minBalance) })
}

// canPay reports whether an attempt that costs lamports may use the payer now.
func (a *account) canPay(now time.Time, lamports, minimum uint64) bool {
	return a.known && a.free() >= max(lamports, minimum) && a.breaker.allows(now)
}

// preferredTo reports whether a is preferred to b as the payer.
func (a *account) preferredTo(b *account) bool {
	if a.inFlight != b.inFlight {
		return a.inFlight < b.inFlight
	}
	return a.free() > b.free()
}
