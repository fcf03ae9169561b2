package rpc

import (
	"context"
	"errors"
	"slices"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// errNotNamed reports that a caller asked for a transaction that does not name the account.
var errNotNamed = errors.New("the transaction does not name the account: ask for one that does")

// Payment reads what a finalized transaction did to an account's lamports; nil when the endpoint
// does not know the transaction as finalized.
func (c *Client) Payment(ctx context.Context, signature solana.Signature, account solana.PublicKey) (*onchain.Payment, error) {
	tx, err := c.transaction(ctx, signature, onchain.Finalized)
	if err != nil || tx == nil {
		return nil, err
	}
	if !slices.Contains(tx.keys, account) {
		return nil, errNotNamed
	}
	return tx.payment(account), nil
}

// payment returns what the transaction did to one of its accounts.
func (t *transaction) payment(account solana.PublicKey) *onchain.Payment {
	i := slices.Index(t.keys, account)
	created, sizes := t.accountCosts(account)
	return &onchain.Payment{
		Signature: t.Signature, Slot: t.slot, At: t.at, FeePayer: t.FeePayer, Failed: t.Failed,
		Fee: t.fee, SignatureFees: min(t.fee, shieldpool.SignatureFee*t.signatures),
		Created: created, CreatedSizes: sizes, Before: t.pre[i], After: t.post[i],
	}
}
