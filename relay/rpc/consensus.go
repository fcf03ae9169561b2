package rpc

import (
	"context"
	"errors"

	"github.com/relaypool/relaypool/relay/onchain"
)

// Consensus reads the consensus rules of the chain. The rules are Alpenglow's if the endpoint has
// the certificate of Alpenglow's genesis block (SIMD-0384), and TowerBFT's if it has none. A node
// older than Agave 4.3 does not know the method. The rules are then unknown.
func (c *Client) Consensus(ctx context.Context) (onchain.Consensus, error) {
	cert, err := readOrNull[*struct {
		Block *struct {
			Slot *uint64 `json:"slot"`
		} `json:"block"`
	}](ctx, c, methodGenesisCert)
	var refused *onchain.RPCError
	switch {
	case errors.As(err, &refused) && refused.Code == codeUnknownMethod:
		return onchain.ConsensusUnknown, nil
	case err != nil:
		return onchain.ConsensusUnknown, err
	case cert == nil:
		return onchain.TowerBFT, nil
	case cert.Block == nil || cert.Block.Slot == nil:
		return onchain.ConsensusUnknown, onchain.Malformed(methodGenesisCert, "the certificate's block is missing")
	}
	return onchain.Alpenglow, nil
}

const methodGenesisCert = "getAgGenesisCert"
