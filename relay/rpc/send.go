package rpc

import (
	"context"
	"encoding/base64"
	"errors"

	"github.com/gagliardetto/solana-go"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/relaypool/relaypool/relay/onchain"
)

// Send sends a signed transaction to the endpoint. The endpoint is asked not to
// repeat it, because the relay rebroadcasts by its own rules. With preflight the endpoint
// simulates the transaction first, at the confirmed commitment: the relay reads blockhashes and
// the tree at the same commitment, so the simulation knows the proof's root. A node that has not
// reached minContextSlot, the slot of the blockhash, refuses the transaction; 0 accepts any node.
//
// Nil means that the endpoint accepted the transaction, not that it landed. *onchain.SendError
// means that this send put nothing on the chain. After onchain.ErrUnavailable the transaction may
// land.
func (c *Client) Send(ctx context.Context, raw []byte, preflight bool, minContextSlot uint64) error {
	conf := config{"encoding": "base64", "maxRetries": 0, "skipPreflight": !preflight, "preflightCommitment": onchain.Confirmed}
	params := []any{base64.StdEncoding.EncodeToString(raw), conf.notBefore(minContextSlot)}
	alone := func() error { return c.call(ctx, methodSend, params, decodeSignature) }
	if preflight || c.sends == nil {
		return alone()
	}
	var batched bool
	err := c.gated(ctx, methodSend, func() (err error) {
		batched, err = c.sends.send(ctx, params)
		return err
	})
	if !batched || !fromBatch(err) {
		return err
	}
	repeated := alone()
	if kind := onchain.KindOf(repeated); errors.Is(err, onchain.ErrUnavailable) && repeated != nil && (kind == "" || kind == onchain.KindBudget) {
		return err // a refusal, or no call, says nothing of what the endpoint did with the batch
	}
	return repeated
}

const methodSend = "sendTransaction"

// decodeSignature reads a send's result. The signature is known already, but an answer without one is none.
func decodeSignature(d *jsontext.Decoder) error {
	return json.UnmarshalDecode(d, new(solana.Signature))
}
