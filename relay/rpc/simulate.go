package rpc

import (
	"context"
	"encoding/base64"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Simulate runs a transaction on the newest confirmed state without sending it. Its
// signatures are not checked. With replaceBlockhash, a transaction with an expired
// blockhash runs too. A node that has not reached minContextSlot does not answer; 0 accepts
// any node.
func (c *Client) Simulate(ctx context.Context, raw []byte, replaceBlockhash bool, minContextSlot uint64) (onchain.Simulation, error) {
	const method = "simulateTransaction"
	type value struct {
		Err           jsontext.Value `json:"err"`
		UnitsConsumed *uint64        `json:"unitsConsumed"`
		LoadedData    uint64         `json:"loadedAccountsDataSize"`
	}
	result, err := read[atSlot[value]](ctx, c, method, base64.StdEncoding.EncodeToString(raw), config{
		"encoding": "base64", "sigVerify": false, "replaceRecentBlockhash": replaceBlockhash, "commitment": onchain.Confirmed,
	}.notBefore(minContextSlot))
	if err == nil {
		err = onchain.CheckSlot(method, result.Slot, minContextSlot)
	}
	if err != nil {
		return onchain.Simulation{}, err
	}
	out := onchain.Simulation{Slot: result.Slot, LoadedData: result.Value.LoadedData}
	if out.Err, err = shieldpool.ParseTransactionError(result.Value.Err); err != nil {
		return onchain.Simulation{}, onchain.Malformed(method, "%v", err)
	}
	switch units := result.Value.UnitsConsumed; {
	case units != nil:
		out.UnitsConsumed = *units
	case out.Err == nil:
		return onchain.Simulation{}, onchain.Malformed(method, "unitsConsumed is missing")
	}
	return out, nil
}
