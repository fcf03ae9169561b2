package token

import (
	"math"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/token/layout"
)

// transfer is Transfer and TransferChecked: accounts source, of the second the
// mint, destination, authority; data amount and, of the second, decimals.
func (c *call) transfer() error {
	amount, err := c.amount()
	if err != nil {
		return err
	}
	checked := c.tag == tagTransferChecked
	var decimals uint8
	if checked {
		if decimals, err = c.decimals(); err != nil {
			return err
		}
	}
	var fromRef, mintRef, toRef, authority *bank.AccountRef
	take := []**bank.AccountRef{&fromRef, &toRef, &authority}
	if checked {
		take = []**bank.AccountRef{&fromRef, &mintRef, &toRef, &authority}
	}
	if err := c.takeAll(take...); err != nil {
		return err
	}
	from, err := openAccount(fromRef)
	if err != nil {
		return err
	}
	to, err := openAccount(toRef)
	if err != nil {
		return err
	}
	switch {
	case from.State == layout.Frozen || to.State == layout.Frozen:
		return ErrAccountFrozen
	case from.Amount < amount:
		return ErrInsufficientFunds
	case from.Mint != to.Mint:
		return ErrMintMismatch
	}
	if checked {
		if err := checkDecimals(mintRef, from.Mint, decimals); err != nil {
			return err
		}
	}
	self := fromRef.Key() == toRef.Key()
	if err := spend(from, authority, amount, self); err != nil {
		return err
	}
	if self || amount == 0 {
		if err := c.owned(fromRef, toRef); err != nil {
			return err
		}
	}
	if self {
		return nil
	}
	return move(fromRef, toRef, from, to, amount)
}

// checkDecimals holds the mint that a checked instruction passes against the
// account's.
func checkDecimals(ref *bank.AccountRef, want solana.PublicKey, decimals uint8) error {
	if ref.Key() != want {
		return ErrMintMismatch
	}
	mint, err := openMint(ref)
	if err != nil {
		return err
	}
	if mint.Decimals != decimals {
		return ErrMintDecimalsMismatch
	}
	return nil
}

// spend checks that the authority may take an amount from an account, as its
// owner or as its delegate, whose allowance it reduces unless keep is set.
func spend(from *layout.Account, authority *bank.AccountRef, amount uint64, keep bool) error {
	if from.Delegate == nil || authority.Key() != *from.Delegate {
		return authorised(from.Owner, authority)
	}
	if err := authorised(*from.Delegate, authority); err != nil {
		return err
	}
	if from.Delegated < amount {
		return ErrInsufficientFunds
	}
	if keep {
		return nil
	}
	if from.Delegated -= amount; from.Delegated == 0 {
		from.Delegate = nil
	}
	return nil
}

// move moves an amount between two accounts, and of native ones the lamports.
func move(fromRef, toRef *bank.AccountRef, from, to *layout.Account, amount uint64) error {
	if to.Amount > math.MaxUint64-amount {
		return ErrOverflow
	}
	from.Amount -= amount
	to.Amount += amount
	if from.Native != nil && amount > 0 {
		if err := fromRef.SubLamports(amount); err != nil {
			return err
		}
		if err := toRef.AddLamports(amount); err != nil {
			return err
		}
	}
	if err := fromRef.SetData(from.Bytes()); err != nil {
		return err
	}
	return toRef.SetData(to.Bytes())
}

// approve is Approve and ApproveChecked: accounts source, of the second the
// mint, delegate, owner; data amount and, of the second, decimals.
func (c *call) approve() error {
	amount, err := c.amount()
	if err != nil {
		return err
	}
	checked := c.tag == tagApproveChecked
	var decimals uint8
	if checked {
		if decimals, err = c.decimals(); err != nil {
			return err
		}
	}
	var ref, mintRef, delegate, owner *bank.AccountRef
	take := []**bank.AccountRef{&ref, &delegate, &owner}
	if checked {
		take = []**bank.AccountRef{&ref, &mintRef, &delegate, &owner}
	}
	if err := c.takeAll(take...); err != nil {
		return err
	}
	account, err := openAccount(ref)
	if err != nil {
		return err
	}
	if account.State == layout.Frozen {
		return ErrAccountFrozen
	}
	if checked {
		if err := checkDecimals(mintRef, account.Mint, decimals); err != nil {
			return err
		}
	}
	if err := authorised(account.Owner, owner); err != nil {
		return err
	}
	key := delegate.Key()
	account.Delegate, account.Delegated = &key, amount
	return ref.SetData(account.Bytes())
}

// revoke takes a delegate's allowance back: accounts source, owner.
func (c *call) revoke() error {
	var ref, owner *bank.AccountRef
	if err := c.takeAll(&ref, &owner); err != nil {
		return err
	}
	account, err := openAccount(ref)
	if err != nil {
		return err
	}
	if account.State == layout.Frozen {
		return ErrAccountFrozen
	}
	if err := authorised(account.Owner, owner); err != nil {
		return err
	}
	account.Delegate, account.Delegated = nil, 0
	return ref.SetData(account.Bytes())
}
