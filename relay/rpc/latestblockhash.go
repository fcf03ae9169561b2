package rpc

import (
	"context"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
)

// LatestBlockhash reads the newest confirmed blockhash.
func (c *Client) LatestBlockhash(ctx context.Context) (onchain.Blockhash, error) {
	const method = "getLatestBlockhash"
	type value struct {
		Blockhash            solana.Hash `json:"blockhash"`
		LastValidBlockHeight uint64      `json:"lastValidBlockHeight"`
	}
	result, err := read[atSlot[value]](ctx, c, method, committed(onchain.Confirmed))
	if err != nil {
		return onchain.Blockhash{}, err
	}
	if result.Value.Blockhash.IsZero() || result.Value.LastValidBlockHeight == 0 {
		return onchain.Blockhash{}, onchain.Malformed(method, "blockhash or lastValidBlockHeight is missing")
	}
	return onchain.Blockhash{
		Hash: result.Value.Blockhash, Slot: result.Slot,
		LastValidBlockHeight: result.Value.LastValidBlockHeight,
	}, nil
}
