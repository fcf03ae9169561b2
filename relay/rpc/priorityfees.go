package rpc

import (
	"cmp"
	"context"
	"slices"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
)

// PriorityFees returns one fee for each recent block, in micro-lamports a compute unit: the lowest
// priority fee among the block's transactions that write the accounts. The newest block's fee is the
// last one.
func (c *Client) PriorityFees(ctx context.Context, writable []solana.PublicKey) ([]uint64, error) {
	const method = "getRecentPrioritizationFees"
	type slotFee struct {
		Slot uint64  `json:"slot"`
		Fee  *uint64 `json:"prioritizationFee"`
	}
	result, err := read[[]slotFee](ctx, c, method, writable)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(result, func(a, b slotFee) int { return cmp.Compare(a.Slot, b.Slot) })
	fees := make([]uint64, len(result))
	for i, r := range result {
		if r.Fee == nil {
			return nil, onchain.Malformed(method, "entry %d has no prioritizationFee", i)
		}
		fees[i] = *r.Fee
	}
	return fees, nil
}
