package rpc

import (
	"context"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
)

// GenesisHash reads the hash that identifies the cluster. A zero hash is refused, because it
// stands for an unknown one.
func (c *Client) GenesisHash(ctx context.Context) (solana.Hash, error) {
	const method = "getGenesisHash"
	hash, err := read[solana.Hash](ctx, c, method)
	if err == nil && hash.IsZero() {
		err = onchain.Malformed(method, "the hash is zero")
	}
	return hash, err
}
