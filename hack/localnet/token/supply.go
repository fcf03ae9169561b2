package token

import (
	"math"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/token/layout"
)

// mintTo is MintTo and MintToChecked: accounts mint, destination, authority;
// data amount and, of the second, decimals.
func (c *call) mintTo() error {
	amount, err := c.amount()
	if err != nil {
		return err
	}
	var mintRef, ref, authority *bank.AccountRef
	if err := c.takeAll(&mintRef, &ref, &authority); err != nil {
		return err
	}
	account, err := openAccount(ref)
	if err != nil {
		return err
	}
	switch {
	case account.State == layout.Frozen:
		return ErrAccountFrozen
	case account.Native != nil:
		return ErrNativeNotSupported
	case mintRef.Key() != account.Mint:
		return ErrMintMismatch
	}
	mint, err := c.mintOf(mintRef, tagMintToChecked)
	if err != nil {
		return err
	}
	if mint.Authority == nil {
		return ErrFixedSupply
	}
	if err := authorised(*mint.Authority, authority); err != nil {
		return err
	}
	if amount == 0 {
		if err := c.owned(mintRef, ref); err != nil {
			return err
		}
	}
	if account.Amount > math.MaxUint64-amount || mint.Supply > math.MaxUint64-amount {
		return ErrOverflow
	}
	account.Amount += amount
	mint.Supply += amount
	return setBoth(ref, account, mintRef, mint)
}

// burn is Burn and BurnChecked: accounts source, mint, authority; data amount
// and, of the second, decimals.
func (c *call) burn() error {
	amount, err := c.amount()
	if err != nil {
		return err
	}
	var ref, mintRef, authority *bank.AccountRef
	if err := c.takeAll(&ref, &mintRef, &authority); err != nil {
		return err
	}
	account, err := openAccount(ref)
	if err != nil {
		return err
	}
	switch {
	case account.State == layout.Frozen:
		return ErrAccountFrozen
	case account.Native != nil:
		return ErrNativeNotSupported
	case account.Amount < amount:
		return ErrInsufficientFunds
	case mintRef.Key() != account.Mint:
		return ErrMintMismatch
	}
	mint, err := c.mintOf(mintRef, tagBurnChecked)
	if err != nil {
		return err
	}
	if err := spend(account, authority, amount, false); err != nil {
		return err
	}
	if amount == 0 {
		if err := c.owned(ref, mintRef); err != nil {
			return err
		}
	}
	if mint.Supply < amount {
		return ErrOverflow
	}
	account.Amount -= amount
	mint.Supply -= amount
	return setBoth(ref, account, mintRef, mint)
}

// mintOf reads a mint, whose decimals the instruction with the checked tag
// names.
func (c *call) mintOf(ref *bank.AccountRef, checked byte) (*layout.Mint, error) {
	mint, err := openMint(ref)
	if err != nil || c.tag != checked {
		return mint, err
	}
	decimals, err := c.decimals()
	if err != nil {
		return nil, err
	}
	if decimals != mint.Decimals {
		return nil, ErrMintDecimalsMismatch
	}
	return mint, nil
}

func setBoth(ref *bank.AccountRef, account *layout.Account, mintRef *bank.AccountRef, mint *layout.Mint) error {
	if err := ref.SetData(account.Bytes()); err != nil {
		return err
	}
	return mintRef.SetData(mint.Bytes())
}

// closeAccount gives all lamports of an account away: accounts account,
// destination, authority. Tokens must be gone before, unless they are native.
func (c *call) closeAccount() error {
	var ref, to, authority *bank.AccountRef
	if err := c.takeAll(&ref, &to, &authority); err != nil {
		return err
	}
	if ref.Key() == to.Key() {
		return bank.ErrInvalidAccountData
	}
	account, err := openAccount(ref)
	if err != nil {
		return err
	}
	if account.Native == nil && account.Amount != 0 {
		return ErrNonNativeHasBalance
	}
	closer := account.Owner
	if account.CloseAuthority != nil {
		closer = *account.CloseAuthority
	}
	if err := authorised(closer, authority); err != nil {
		return err
	}
	lamports := ref.Lamports()
	if err := ref.SubLamports(lamports); err != nil {
		return err
	}
	if err := to.AddLamports(lamports); err != nil {
		return err
	}
	if err := ref.SetData(nil); err != nil {
		return err
	}
	return ref.SetOwner(solana.SystemProgramID)
}

// syncNative makes the lamports that a native account has got its amount.
func (c *call) syncNative() error {
	ref, err := c.take()
	if err != nil {
		return err
	}
	if err := c.owned(ref); err != nil {
		return err
	}
	account, err := openAccount(ref)
	if err != nil {
		return err
	}
	if account.Native == nil {
		return ErrNonNativeNotSupported
	}
	if ref.Lamports() < *account.Native {
		return ErrOverflow
	}
	amount := ref.Lamports() - *account.Native
	if amount < account.Amount {
		return ErrInvalidState
	}
	account.Amount = amount
	return ref.SetData(account.Bytes())
}
