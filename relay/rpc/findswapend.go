package rpc

import (
	"context"
	"slices"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// FindSwapEnd finds the transaction that ended the swap, in the slots from first to last;
// nil when the endpoint's history has none. Other transactions may name the address of the
// swap's state, and call the program without effect: only a successful instruction of the
// program ends the swap.
func (c *Client) FindSwapEnd(ctx context.Context, swap *shieldpool.Swap, first, last uint64) (*onchain.SwapEnd, error) {
	succeeded, err := c.listSuccessful(ctx, swap.State)
	if err != nil {
		return nil, err
	}
	for _, info := range slices.Backward(succeeded) {
		// Unrelated transactions outside the range cost no read.
		if info.Slot < first || info.Slot > last {
			continue
		}
		tx, err := c.readListed(ctx, info)
		if err != nil {
			return nil, err
		}
		how := endingOf(tx, swap)
		if how == "" {
			continue
		}
		confirmation, err := c.confirmation(ctx, info)
		if err != nil {
			return nil, err
		}
		return &onchain.SwapEnd{How: how, Signature: info.Signature, Slot: tx.slot, Confirmation: confirmation, FeePayer: tx.FeePayer}, nil
	}
	return nil, nil
}

// endingOf returns how a transaction ended the swap; "" when it did not.
func endingOf(tx *transaction, swap *shieldpool.Swap) shieldpool.SwapEnding {
	if tx.Failed {
		return ""
	}
	for _, ix := range tx.Instructions {
		if how := swap.EndedBy(ix.ProgramID, ix.Accounts, ix.Data); how != "" {
			return how
		}
	}
	return ""
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
