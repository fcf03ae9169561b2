package chain

import (
	"context"
	"slices"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/onchain"
)

// verifiedLastValid returns the last block height at which a transaction with the blockhash can
// land. verifiedLastValid refuses a blockhash whose height the chain cannot have.
func (e *Endpoints) verifiedLastValid(ctx context.Context, source askedEndpoint, h onchain.Blockhash) (uint64, error) {
	if h.LastValidBlockHeight < blockhashLifetime || h.LastValidBlockHeight-blockhashLifetime > h.Slot {
		return 0, contradiction(methodBlockhash, "its blockhash of slot %d is valid up to height %d: expected at most %d, as no block is higher than its slot",
			h.Slot, h.LastValidBlockHeight, h.Slot+blockhashLifetime)
	}
	b := block{h.Slot, h.LastValidBlockHeight - blockhashLifetime}
	if err := e.checkBlockhashHeight(source.index, h, b); err != nil {
		return 0, err
	}
	switch due, noAgreement := e.heights.startAsking(e.now()); {
	case due && noAgreement:
		if err := e.askHeights(ctx, source); err != nil {
			return 0, err
		}
		if err := e.checkBlockhashHeight(source.index, h, b); err != nil { // now also against other endpoints' heights
			return 0, err
		}
	case due:
		e.backgroundWork.run(func() { _ = e.askHeights(e.background, source) }) // the next blockhash is checked against the result
	}
	if a, ok := e.heights.agreedOn(); ok {
		// The blockhash may be newer than the slot that the endpoint reports, but not newer than
		// the chain.
		_, most := a.heightsAt(max(b.slot, source.best, e.slots.HighestIfUnknown(e.now())))
		return max(most+blockhashLifetime, h.LastValidBlockHeight), nil
	}
	if e.hasSeveral() {
		return max(h.Slot, e.slots.HighestIfUnknown(e.now())) + blockhashLifetime, nil
	}
	return h.LastValidBlockHeight, nil
}

// checkBlockhashHeight checks a blockhash against the known heights of the chain.
func (e *Endpoints) checkBlockhashHeight(i int, h onchain.Blockhash, b block) error {
	above, below, contradictedBy := e.heights.observe(i, byBlockhash, b, e.now())
	e.recordHeightDispute(i, contradictedBy)
	switch {
	case above > 0:
		e.recordRefusedHeight(i, contradictedBy)
		return contradiction(methodBlockhash, "its blockhash is valid up to height %d, %d above what the chain can have reached", h.LastValidBlockHeight, above+e.heights.slack)
	case below > 0:
		return outdatedBlockhash(h, "its blockhash is valid up to height %d, %d below what the chain has reached", h.LastValidBlockHeight, below+e.heights.slack)
	}
	return nil
}

// askHeights asks other endpoints for the height of their newest block, until there is an
// agreement. If there already is one, a single call is enough. If there is no agreement after these
// calls, or no call was possible, askHeights asks the endpoint that returned the blockhash, because
// the newest block of that endpoint must be consistent with the blockhash.
func (e *Endpoints) askHeights(ctx context.Context, source askedEndpoint) error {
	others := slices.DeleteFunc(e.candidates([]Role{RoleRead}, "getEpochInfo", outbound.Read), func(ep *endpoint) bool { return ep.index == source.index })
	for _, ep := range others {
		permit, ok := ep.breaker.Try()
		if !ok {
			continue
		}
		// The call itself records the height. A failed call adds nothing.
		_, _ = attempt(ctx, e, ep, permit, query[block]{method: "getEpochInfo", urgency: outbound.Read, do: e.newestBlock}, 2)
		if _, agreed := e.heights.agreedOn(); agreed {
			return nil
		}
	}
	if _, err := e.newestBlock(ctx, source); onchain.KindOf(err) == onchain.KindContradiction {
		return err
	}
	return nil
}

// newestBlock reads an endpoint's newest confirmed block and checks it against the known heights.
func (e *Endpoints) newestBlock(ctx context.Context, source askedEndpoint) (block, error) {
	b, err := tip(ctx, source, onchain.Confirmed)
	if err != nil {
		return b, err
	}
	return b, e.checkBlock(source.index, b)
}

// checkBlock refuses a block whose height the chain cannot have.
func (e *Endpoints) checkBlock(i int, b block) error {
	above, below, contradictedBy := e.heights.observe(i, byEpochInfo, b, e.now())
	e.recordHeightDispute(i, contradictedBy)
	if above == 0 && below == 0 {
		return nil
	}
	e.recordRefusedHeight(i, contradictedBy)
	return contradiction("getEpochInfo", "its block of slot %d has height %d: %d above the highest possible height, %d below the lowest", b.slot, b.height, above, below)
}
