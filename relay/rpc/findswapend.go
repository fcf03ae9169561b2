package rpc

import (
	"context"
	"slices"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// FindSwapEnd finds the transaction that ended the swap, in the slots from first to last;
// nil when the endpoint's history has none. Other transactions may name the address of the
// swap's state, and call the program without effect: only a successful instruction of the
// program ends the swap.
func (c *Client) FindSwapEnd(ctx context.Context, swap *shieldpool.Swap, first, last uint64) (*onchain.SwapEnd, error) {
	succeeded, err := c.listSuccessful(ctx, swap.State)
	if err != nil {
		return nil, err
	}
	for _, info := range slices.Backward(succeeded) {
		// Unrelated transactions outside the range cost no read.
		if info.Slot < first || info.Slot > last {
			continue
		}
		tx, err := c.readListed(ctx, info)
		if err != nil {
			return nil, err
		}
		how := endingOf(tx, swap)
		if how == "" {
			continue
		}
		confirmation, err := c.confirmation(ctx, info)
		if err != nil {
			return nil, err
		}
		return &onchain.SwapEnd{How: how, Signature: info.Signature, Slot: tx.slot, Confirmation: confirmation, FeePayer: tx.FeePayer}, nil
	}
	return nil, nil
}

// endingOf returns how a transaction ended the swap; "" when it did not.
func endingOf(tx *transaction, swap *shieldpool.Swap) shieldpool.SwapEnding {
	if tx.Failed {
		return ""
	}
	for _, ix := range tx.Instructions {
		if how := swap.EndedBy(ix.ProgramID, ix.Accounts, ix.Data); how != "" {
			return how
		}
	}
	return ""
}
