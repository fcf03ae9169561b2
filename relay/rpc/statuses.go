package rpc

import (
	"context"
	"fmt"

	"github.com/gagliardetto/solana-go"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// MaxStatuses is how many signatures one Statuses call may ask for (Agave).
const MaxStatuses = 256

// Statuses looks up at most 256 signatures: in about the last 150 blocks or, with history,
// in everything that the endpoint keeps. The entry of an unknown signature is nil, which
// proves nothing unless the endpoint's history goes back far enough. slot is the endpoint's
// slot.
func (c *Client) Statuses(ctx context.Context, signatures []solana.Signature, history bool) (statuses []*onchain.Status, slot uint64, err error) {
	const method = "getSignatureStatuses"
	if len(signatures) > MaxStatuses {
		return nil, 0, fmt.Errorf("%s: expected at most %d signatures, received %d", method, MaxStatuses, len(signatures))
	}
	type value struct {
		Slot         *uint64            `json:"slot"`
		Confirmation onchain.Commitment `json:"confirmationStatus"`
		Err          jsontext.Value     `json:"err"`
	}
	result, err := read[atSlot[[]*value]](ctx, c, method, signatures, config{"searchTransactionHistory": history})
	if err != nil {
		return nil, 0, err
	}
	if len(result.Value) != len(signatures) {
		return nil, 0, onchain.Malformed(method, "%d statuses, expected %d", len(result.Value), len(signatures))
	}
	statuses = make([]*onchain.Status, len(signatures))
	for i, v := range result.Value {
		if v == nil {
			continue
		}
		failure, err := shieldpool.ParseTransactionError(v.Err)
		if err != nil {
			return nil, 0, onchain.Malformed(method, "status %d: %v", i, err)
		}
		if v.Slot == nil || !v.Confirmation.AtLeast(onchain.Processed) {
			return nil, 0, onchain.Malformed(method, "status %d has no slot or no confirmationStatus", i)
		}
		statuses[i] = &onchain.Status{Slot: *v.Slot, Confirmation: v.Confirmation, Err: failure}
	}
	return statuses, result.Slot, nil
}
