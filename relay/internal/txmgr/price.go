package txmgr

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/gagliardetto/solana-go"
)

const (
	// priceMaxAge is how many slots a price is used before the fees are read again.
	priceMaxAge = 8
	// priceSlots is how many of the newest slots count: five leaders' slots. A network becomes busy,
	// and calm again, within seconds.
	priceSlots = 20
	// priceTimeout is how long one step waits for the fees.
	priceTimeout = time.Second
)

// priceCache keeps the price of a compute unit for a few slots.
type priceCache struct {
	rule PriceRule
	now  func() time.Time
	slot func() time.Duration

	mu    sync.Mutex
	price uint64
	// readAt is when a step last started to read the fees.
	readAt time.Time
}

func newPriceCache(rule PriceRule, now func() time.Time, slot func() time.Duration) *priceCache {
	return &priceCache{rule: rule, now: now, slot: slot, price: rule.Of(nil)}
}

// current returns the price in micro-lamports. If the last price is too old, one step reads the
// fees again, and meanwhile the other steps use the last price. When the chain does not answer,
// current returns the last price too, so that work goes on. Before the first answer the price is
// the rule's Floor.
func (p *priceCache) current(ctx context.Context, chain Chain, writable []solana.PublicKey) uint64 {
	last, mustRead := p.last()
	if !mustRead {
		return last
	}
	ctx, cancel := context.WithTimeout(ctx, priceTimeout)
	defer cancel()
	fees, err := chain.PriorityFees(ctx, writable)
	if err != nil {
		return last
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.price = p.rule.Of(fees[max(0, len(fees)-priceSlots):])
	return p.price
}

// last returns the last price. If mustRead is true, the price is too old, and it is this caller who
// has to read the fees again.
func (p *priceCache) last() (price uint64, mustRead bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if mustRead = p.readAt.IsZero() || p.now().Sub(p.readAt) >= priceMaxAge*p.slot(); mustRead {
		p.readAt = p.now()
	}
	return p.price, mustRead
}

// escalationStep is doubled, in micro-lamports, in place of a lower price that was offered in vain: a
// price of zero would stay zero however often it is doubled.
const escalationStep = 1000

// escalated returns the price for a job: the price of its market, but at least twice the dearest price
// that the job offered in vain; offered is nil if there was none. The cap bounds the result.
func (p *priceCache) escalated(price uint64, offered *uint64) uint64 {
	if offered != nil {
		price = max(price, doubled(max(*offered, escalationStep), 1, max(p.rule.Cap, 1)))
	}
	return min(price, p.rule.Cap)
}

// PriceRule determines the price of a compute unit from recent fees. The price is the given
// percentile of the fees, but at least Floor and at most Cap. Fees and prices are in micro-lamports
// per compute unit.
type PriceRule struct {
	Floor, Cap uint64
	// Percentile is from 0 to 100.
	Percentile int
}

// Of returns the percentile of the fees, but at least Floor and at most Cap. Without fees it
// returns Floor.
func (r PriceRule) Of(fees []uint64) uint64 {
	price := r.Floor
	if len(fees) > 0 {
		sorted := slices.Sorted(slices.Values(fees))
		price = max(price, sorted[(len(sorted)-1)*r.Percentile/100])
	}
	return min(price, r.Cap)
}
