package rpc

import (
	"context"
	"fmt"
	"slices"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// FindCreation finds the transaction that created the nullifier's account; nil when the endpoint's
// history has none. Other transactions may name the address before and after that one, and may even
// succeed. But only an instruction of the pool's program creates the account.
func (c *Client) FindCreation(ctx context.Context, pool *shieldpool.Pool, nullifier [32]byte) (*onchain.Creation, error) {
	address, _, err := pool.Nullifier(nullifier)
	if err != nil {
		return nil, fmt.Errorf("derive nullifier address: %w", err)
	}
	succeeded, err := c.listSuccessful(ctx, address)
	if err != nil {
		return nil, err
	}
	// Start with the oldest: the address becomes public when the wanted transaction lands, so most
	// unrelated transactions come later.
	for _, info := range slices.Backward(succeeded) {
		found, err := c.readCreation(ctx, info, pool, address, nullifier)
		if err != nil || found != nil {
			return found, err
		}
	}
	return nil, nil
}

// readCreation reads the transaction, and returns it if it created the account.
func (c *Client) readCreation(ctx context.Context, info onchain.SignatureInfo, pool *shieldpool.Pool, address solana.PublicKey, nullifier [32]byte) (*onchain.Creation, error) {
	tx, err := c.readListed(ctx, info)
	if err != nil || tx.Failed {
		return nil, err
	}
	for _, ix := range tx.Instructions {
		if !ix.ProgramID.Equals(pool.Profile.ProgramID) || !slices.Contains(ix.Accounts, address) {
			continue
		}
		call := callOf(pool.Profile, ix)
		if call == nil || !slices.Contains(call.Inputs.Nullifiers[:], nullifier) {
			continue
		}
		confirmation, err := c.confirmation(ctx, info)
		if err != nil {
			return nil, err
		}
		return &onchain.Creation{Signature: info.Signature, Slot: tx.slot, Confirmation: confirmation, FeePayer: tx.FeePayer, Call: call}, nil
	}
	return nil, nil
}

// callOf decodes a Transact or TransactSwap; nil when the instruction is neither. If
// the note envelope has an unknown format, the call is returned without notes.
func callOf(profile *shieldpool.Profile, ix onchain.Instruction) *shieldpool.Call {
	call, err := profile.ParseData(ix.Data)
	for _, size := range []int{shieldpool.TransactLength, shieldpool.TransactSwapLength} {
		if err != nil && len(ix.Data) > size {
			call, err = profile.ParseData(ix.Data[:size])
		}
	}
	if err != nil {
		return nil
	}
	// The recipient of a withdrawal is not in the instruction's data, but among its accounts.
	recipient := slices.IndexFunc(profile.Accounts.Transact, func(a shieldpool.AccountRole) bool { return a.Role == shieldpool.RoleRecipient })
	if call.Kind() == shieldpool.KindWithdrawal && recipient >= 0 && recipient < len(ix.Accounts) {
		call.Recipient = ix.Accounts[recipient]
	}
	return call
}
