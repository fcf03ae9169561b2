package rpc

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// maxHistory bounds the transactions that are listed for one address. A bound is needed,
	// because anybody can lengthen the list of a nullifier's address, for 5000 lamports a
	// transaction.
	maxHistory = 100_000
	// historyPage is the largest page of getSignaturesForAddress.
	historyPage = 1000
)

// errNotNamed reports that a caller asked for a transaction that does not name the account.
var errNotNamed = errors.New("the transaction does not name the account: ask for one that does")

// transaction is a landed transaction, from getTransaction.
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

// Payment reads what a finalized transaction did to an account's lamports; nil when the endpoint
// does not know the transaction as finalized.
func (c *Client) Payment(ctx context.Context, signature solana.Signature, account solana.PublicKey) (*onchain.Payment, error) {
	tx, err := c.transaction(ctx, signature, onchain.Finalized)
	if err != nil || tx == nil {
		return nil, err
	}
	i := slices.Index(tx.keys, account)
	if i < 0 {
		return nil, errNotNamed
	}
	created, sizes := tx.accountCosts(account)
	return &onchain.Payment{
		Signature: signature, Slot: tx.slot, At: tx.at, FeePayer: tx.FeePayer, Failed: tx.Failed,
		Fee: tx.fee, SignatureFees: min(tx.fee, shieldpool.SignatureFee*tx.signatures),
		Created: created, CreatedSizes: sizes, Before: tx.pre[i], After: tx.post[i],
	}, nil
}

// listSuccessful lists all successful transactions that name the address, newest first.
func (c *Client) listSuccessful(ctx context.Context, address solana.PublicKey) ([]onchain.SignatureInfo, error) {
	var out []onchain.SignatureInfo
	var before solana.Signature
	for listed := 0; listed < maxHistory; {
		page, err := c.SignaturesFor(ctx, address, onchain.Confirmed, before, solana.Signature{}, historyPage)
		if err != nil || len(page) == 0 {
			return out, err
		}
		for _, info := range page {
			if !info.Failed {
				out = append(out, info)
			}
		}
		listed, before = listed+len(page), page[len(page)-1].Signature
	}
	return nil, onchain.Malformed("getSignaturesForAddress", "more than %d transactions name the address", maxHistory)
}

// readListed reads a transaction that the endpoint lists as confirmed.
func (c *Client) readListed(ctx context.Context, info onchain.SignatureInfo) (*transaction, error) {
	tx, err := c.transaction(ctx, info.Signature, onchain.Confirmed)
	if err == nil && tx == nil {
		// The endpoint's indexes disagree, so the transaction may exist.
		err = &onchain.Unavailable{Method: "getTransaction", Kind: onchain.KindNotYet, Detail: "the endpoint does not find a transaction that it lists"}
	}
	return tx, err
}

// confirmation returns Finalized or Confirmed for a transaction from a list that was read at
// Confirmed. A lower level in the list is taken as Confirmed. Some archives list no level;
// confirmation then asks whether the transaction is finalized.
func (c *Client) confirmation(ctx context.Context, info onchain.SignatureInfo) (onchain.Commitment, error) {
	switch {
	case info.Confirmation.AtLeast(onchain.Finalized):
		return onchain.Finalized, nil
	case info.Confirmation.AtLeast(onchain.Processed):
		return onchain.Confirmed, nil
	}
	tx, err := c.transaction(ctx, info.Signature, onchain.Finalized)
	if err != nil || tx == nil {
		return onchain.Confirmed, err
	}
	return onchain.Finalized, nil
}
