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

// FindLeftAccounts searches the chain for accounts that swaps left behind. It checks every swap
// state that a transaction of the evidence created, and every account of wrapped SOL that
// Transactions has read. The market's vault is not left behind: its closing balance is read.
func (c *Chain) FindLeftAccounts(ctx context.Context, vault solana.PublicKey, e *verify.Evidence) (err error) {
	if e.Vault.Closing, err = c.Balance(ctx, vault); err != nil {
		return err
	}
	accounts := maps.Clone(c.wrappedSOL)
	delete(accounts, vault)
	for i := range e.Transactions {
		for k := range e.Transactions[i].Calls {
			if call := &e.Transactions[i].Calls[k]; call.Swap != nil {
				accounts[call.Recipient] = true
			}
		}
	}
	keys := slices.SortedFunc(maps.Keys(accounts), func(a, b solana.PublicKey) int { return slices.Compare(a[:], b[:]) })
	e.Searched = len(keys)
	for part := range slices.Chunk(keys, maxAccounts) {
		answer, err := c.Client.GetMultipleAccountsWithOpts(ctx, part, &rpc.GetMultipleAccountsOpts{Encoding: solana.EncodingBase64, Commitment: rpc.CommitmentFinalized})
		if err != nil {
			return fmt.Errorf("search for accounts that swaps left: %w", err)
		}
		for i, found := range answer.Value {
			if left := c.leftAccount(part[i], found); left != nil {
				e.LeftAccounts = append(e.LeftAccounts, *left)
			}
		}
	}
	return nil
}

// maxAccounts is how many accounts one RPC call can read.
const maxAccounts = 100

// leftAccount checks an account; it returns nil when the account has nothing of a swap. An empty
// token account may stay after a refund: nobody can close it.
func (c *Chain) leftAccount(key solana.PublicKey, found *rpc.Account) *verify.LeftAccount {
	switch {
	case found == nil:
		return nil
	case found.Owner == c.Pool.Profile.ProgramID:
		return &verify.LeftAccount{Key: key, What: "swap state", Amount: found.Lamports}
	case found.Owner != solana.TokenProgramID:
		return nil // lamports that somebody sent to the address
	}
	token, err := shieldpool.ParseTokenAccount(found.Data.GetBinary())
	if err != nil || token.Amount == 0 {
		return nil
	}
	return &verify.LeftAccount{Key: key, What: "wrapped SOL", Amount: token.Amount}
}
