package gather

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/hack/drill/verify"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Left searches the chain for accounts that swaps left behind: every state that a
// transaction of the evidence has made, and every account of wrapped SOL that
// Transactions has read. at is the market's, whose closing balance it reads too.
func (c *Chain) Left(ctx context.Context, at solana.PublicKey, e *verify.Evidence) (err error) {
	if e.Vault.Closing, err = c.Balance(ctx, at); err != nil {
		return err
	}
	places := maps.Clone(c.wraps)
	delete(places, at)
	for i := range e.Transactions {
		for k := range e.Transactions[i].Calls {
			if call := &e.Transactions[i].Calls[k]; call.Swap != nil {
				places[call.Recipient] = true
			}
		}
	}
	keys := slices.SortedFunc(maps.Keys(places), func(a, b solana.PublicKey) int { return slices.Compare(a[:], b[:]) })
	e.Searched = len(keys)
	for part := range slices.Chunk(keys, mostAccounts) {
		answer, err := c.Client.GetMultipleAccountsWithOpts(ctx, part, &rpc.GetMultipleAccountsOpts{Encoding: solana.EncodingBase64, Commitment: rpc.CommitmentFinalized})
		if err != nil {
			return fmt.Errorf("search for accounts that swaps left: %w", err)
		}
		for i, found := range answer.Value {
			if left := c.left(part[i], found); left != nil {
				e.LeftAccounts = append(e.LeftAccounts, *left)
			}
		}
	}
	return nil
}

// mostAccounts that an RPC reads at once.
const mostAccounts = 100

// left checks an account; it returns nil when nothing of a swap is in it. An empty
// token account may stay after a refund: nobody can close it.
func (c *Chain) left(key solana.PublicKey, found *rpc.Account) *verify.LeftAccount {
	switch {
	case found == nil:
		return nil
	case found.Owner == c.Pool.Profile.ProgramID:
		return &verify.LeftAccount{Key: key, What: "swap state", Amount: found.Lamports}
	case found.Owner != solana.TokenProgramID:
		return nil // a stranger's lamports
	}
	token, err := shieldpool.ParseTokenAccount(found.Data.GetBinary())
	if err != nil || token.Amount == 0 {
		return nil
	}
	return &verify.LeftAccount{Key: key, What: "wrapped SOL", Amount: token.Amount}
}
