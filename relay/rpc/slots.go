package rpc

import (
	"context"

	"github.com/relaypool/relaypool/relay/onchain"
)

// Newest reads the newest block of the commitment.
func (c *Client) Newest(ctx context.Context, commitment onchain.Commitment) (onchain.Tip, error) {
	const method = "getEpochInfo"
	result, err := read[struct {
		Slot   *uint64 `json:"absoluteSlot"`
		Height *uint64 `json:"blockHeight"`
	}](ctx, c, method, committed(commitment))
	switch {
	case err != nil:
		return onchain.Tip{}, err
	case result.Slot == nil || result.Height == nil || *result.Height > *result.Slot:
		return onchain.Tip{}, onchain.Malformed(method, "absoluteSlot or blockHeight is missing, or the height is above the slot")
	}
	return onchain.Tip{Slot: *result.Slot, Height: *result.Height}, nil
}

// Slot reads the newest slot of the commitment.
func (c *Client) Slot(ctx context.Context, commitment onchain.Commitment) (uint64, error) {
	return read[uint64](ctx, c, "getSlot", committed(commitment))
}

// FirstAvailable reads the slot of the oldest block that the endpoint still has.
func (c *Client) FirstAvailable(ctx context.Context) (uint64, error) {
	return read[uint64](ctx, c, "getFirstAvailableBlock")
}
