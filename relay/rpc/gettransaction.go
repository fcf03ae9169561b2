package rpc

import (
	"context"
	"errors"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
)

// transaction is a landed transaction, from getTransaction or getBlock.
type transaction struct {
	resolvedTransaction
	slot      uint64
	at        time.Time // zero when the endpoint does not report it
	fee       uint64
	pre, post []uint64 // lamports of each key, before and after
}

// transaction reads a transaction that has at least the commitment; nil when the endpoint does not
// know such a transaction.
func (c *Client) transaction(ctx context.Context, signature solana.Signature, commitment onchain.Commitment) (*transaction, error) {
	const method = "getTransaction"
	type answer struct {
		Slot *uint64 `json:"slot"`
		Time *int64  `json:"blockTime"`
		wireTransaction
	}
	var wire *answer
	read := func(encoding string) error {
		return c.anyVersion(func(version int64) (err error) {
			wire, err = readOrNull[*answer](ctx, c, method, signature, config{
				"encoding": encoding, "commitment": commitment, "maxSupportedTransactionVersion": version,
			})
			return err
		})
	}
	if err := read("base64"); err != nil || wire == nil {
		return nil, err
	}
	tx, err := wire.resolve()
	if errors.Is(err, errUnknownVersion) {
		if err := read("json"); err != nil || wire == nil {
			return nil, err
		}
		tx, err = wire.resolve()
	}
	switch {
	case err != nil:
		return nil, onchain.Malformed(method, "%v", err)
	case wire.Slot == nil || wire.Meta.Fee == nil:
		return nil, onchain.Malformed(method, "slot or fee is missing")
	case tx.Signature != signature:
		return nil, onchain.Malformed(method, "the answer is another transaction than the requested one")
	case len(wire.Meta.Pre) != len(tx.keys) || len(wire.Meta.Post) != len(tx.keys):
		return nil, onchain.Malformed(method, "%d balances before and %d after the transaction, expected one for each of %d accounts", len(wire.Meta.Pre), len(wire.Meta.Post), len(tx.keys))
	}
	out := &transaction{resolvedTransaction: tx, slot: *wire.Slot, fee: *wire.Meta.Fee, pre: wire.Meta.Pre, post: wire.Meta.Post}
	if wire.Time != nil {
		out.at = time.Unix(*wire.Time, 0).UTC()
	}
	return out, nil
}
