package rpc

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/gagliardetto/solana-go"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Send sends a signed transaction to the endpoint, once. The endpoint is asked not to
// repeat it, because the relay rebroadcasts by its own rules. With preflight the endpoint
// simulates the transaction first, at the confirmed commitment: the relay reads blockhashes and
// the tree at the same commitment, so the simulation knows the proof's root. A node that has not
// reached minContextSlot, the slot of the blockhash, refuses the transaction; 0 accepts any node.
//
// Nil means that the endpoint accepted the transaction, not that it landed. *onchain.SendError
// means that this send put nothing on the chain. After onchain.ErrUnavailable the transaction may
// land.
func (c *Client) Send(ctx context.Context, raw []byte, preflight bool, minContextSlot uint64) error {
	const method = "sendTransaction"
	conf := config{"encoding": "base64", "maxRetries": 0, "skipPreflight": !preflight, "preflightCommitment": onchain.Confirmed}
	var result jsontext.Value
	if err := c.call(ctx, method, []any{base64.StdEncoding.EncodeToString(raw), conf.notBefore(minContextSlot)}, keep(&result)); err != nil {
		return err
	}
	var signature solana.Signature
	if json.Unmarshal(result, &signature) != nil {
		return onchain.Malformed(method, "result of %d bytes is not a signature", len(result))
	}
	return nil
}

// Simulate runs a transaction on the newest confirmed state without sending it. Its
// signatures are not checked. With replaceBlockhash, a transaction with an expired
// blockhash runs too. A node that has not reached minContextSlot does not answer; 0 accepts
// any node.
func (c *Client) Simulate(ctx context.Context, raw []byte, replaceBlockhash bool, minContextSlot uint64) (onchain.Simulation, error) {
	const method = "simulateTransaction"
	type value struct {
		Err           json.RawMessage `json:"err"`
		UnitsConsumed *uint64         `json:"unitsConsumed"`
		LoadedData    uint64          `json:"loadedAccountsDataSize"`
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
		Err          json.RawMessage    `json:"err"`
	}
	// The copy is never nil: JSON would encode a nil list as null.
	signatures = append([]solana.Signature{}, signatures...)
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

// SignaturesFor lists the confirmed or finalized transactions that name the address, newest first;
// transactions of one slot have no order. before and until are signatures: only transactions older
// than the first and newer than the second are listed. A zero signature sets no bound. At most
// limit (1 to 1000) are returned; 0 means 1000.
func (c *Client) SignaturesFor(ctx context.Context, address solana.PublicKey, commitment onchain.Commitment, before, until solana.Signature, limit int) ([]onchain.SignatureInfo, error) {
	const method = "getSignaturesForAddress"
	conf := committed(commitment)
	if !before.IsZero() {
		conf["before"] = before
	}
	if !until.IsZero() {
		conf["until"] = until
	}
	if limit > 0 {
		conf["limit"] = limit
	}
	result, err := read[[]struct {
		Signature solana.Signature `json:"signature"`
		Slot      *uint64          `json:"slot"`
		// Confirmation is null in the answers of some archives.
		Confirmation *onchain.Commitment `json:"confirmationStatus"`
		Err          json.RawMessage     `json:"err"`
	}](ctx, c, method, address, conf)
	if err != nil {
		return nil, err
	}
	infos := make([]onchain.SignatureInfo, len(result))
	for i, r := range result {
		if r.Slot == nil || r.Signature.IsZero() {
			return nil, onchain.Malformed(method, "entry %d has no signature or no slot", i)
		}
		infos[i] = onchain.SignatureInfo{Signature: r.Signature, Slot: *r.Slot, Failed: len(r.Err) > 0 && !isNull(r.Err)}
		if r.Confirmation != nil && r.Confirmation.AtLeast(onchain.Processed) {
			infos[i].Confirmation = *r.Confirmation
		}
	}
	return infos, nil
}
