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
