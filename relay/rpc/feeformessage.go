package rpc

import (
	"context"
	"encoding/base64"

	"github.com/relaypool/relaypool/relay/onchain"
)

// FeeForMessage returns the network's fee for a transaction with the message, in lamports, and the
// slot of the answer. The message needs a recent blockhash.
func (c *Client) FeeForMessage(ctx context.Context, message []byte) (lamports, slot uint64, err error) {
	const method = "getFeeForMessage"
	result, err := read[atSlot[*uint64]](ctx, c, method, base64.StdEncoding.EncodeToString(message), committed(onchain.Confirmed))
	if err != nil {
		return 0, 0, err
	}
	if result.Value == nil {
		return 0, 0, onchain.Malformed(method, "no fee: the node does not know the blockhash")
	}
	return *result.Value, result.Slot, nil
}
