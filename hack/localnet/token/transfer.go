package token

import (
	"math"

	spl "github.com/gagliardetto/solana-go/programs/token"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

// transfer moves an amount, and for native accounts also the lamports. Accounts:
// source, destination, owner.
func (c *call) transfer() error {
	fromRef, toRef, amount := c.accounts[0], c.accounts[1], c.amount()
	from, err := openAccount(fromRef)
	if err != nil {
		return err
	}
	to, err := openAccount(toRef)
	if err != nil {
		return err
	}
	switch {
	case from.State == spl.Frozen || to.State == spl.Frozen:
		return ErrAccountFrozen
	case from.Amount < amount:
		return ErrInsufficientFunds
	case from.Mint != to.Mint:
		return ErrMintMismatch
	}
	if err := checkAuthority(from.Owner, c.accounts[2]); err != nil {
		return err
	}
	self := fromRef.Key() == toRef.Key()
	if self || amount == 0 {
		if err := c.checkOwned(fromRef, toRef); err != nil {
			return err
		}
	}
	if self {
		return nil
	}
	if to.Amount > math.MaxUint64-amount {
		return ErrOverflow
	}
	from.Amount, to.Amount = from.Amount-amount, to.Amount+amount
	if from.IsNative != nil && amount > 0 {
		if err := fromRef.MoveLamports(toRef, amount); err != nil {
			return err
		}
	}
	if err := fromRef.SetData(encode(from)); err != nil {
		return err
	}
	return toRef.SetData(encode(to))
}

// mintTo mints tokens. Accounts: mint, destination, authority.
func (c *call) mintTo() error {
	mintRef, ref, amount := c.accounts[0], c.accounts[1], c.amount()
	account, mint, err := c.openAccountAndMint(ref, mintRef)
	if err != nil {
		return err
	}
	if mint.MintAuthority == nil {
		return ErrFixedSupply
	}
	if err := checkAuthority(*mint.MintAuthority, c.accounts[2]); err != nil {
		return err
	}
	if account.Amount > math.MaxUint64-amount || mint.Supply > math.MaxUint64-amount {
		return ErrOverflow
	}
	account.Amount, mint.Supply = account.Amount+amount, mint.Supply+amount
	return c.storeAccountAndMint(ref, account, mintRef, mint)
}

// burn destroys tokens. Accounts: source, mint, owner.
func (c *call) burn() error {
	ref, mintRef, amount := c.accounts[0], c.accounts[1], c.amount()
	account, mint, err := c.openAccountAndMint(ref, mintRef)
	switch {
	case err != nil:
		return err
	case account.Amount < amount:
		return ErrInsufficientFunds
	}
	if err := checkAuthority(account.Owner, c.accounts[2]); err != nil {
		return err
	}
	if mint.Supply < amount {
		return ErrOverflow
	}
	account.Amount, mint.Supply = account.Amount-amount, mint.Supply-amount
	return c.storeAccountAndMint(ref, account, mintRef, mint)
}

// openAccountAndMint reads the token account and the mint of a mintTo or a burn.
func (c *call) openAccountAndMint(ref, mintRef *bank.AccountRef) (*spl.Account, *spl.Mint, error) {
	account, err := openAccount(ref)
	switch {
	case err != nil:
		return nil, nil, err
	case account.State == spl.Frozen:
		return nil, nil, ErrAccountFrozen
	case account.IsNative != nil:
		return nil, nil, ErrNativeNotSupported
	case mintRef.Key() != account.Mint:
		return nil, nil, ErrMintMismatch
	}
	mint, err := openMint(mintRef)
	return account, mint, err
}

func (c *call) storeAccountAndMint(ref *bank.AccountRef, account *spl.Account, mintRef *bank.AccountRef, mint *spl.Mint) error {
	if c.amount() == 0 {
		if err := c.checkOwned(ref, mintRef); err != nil {
			return err
		}
	}
	if err := ref.SetData(encode(account)); err != nil {
		return err
	}
	return mintRef.SetData(encode(mint))
}

// closeAccount moves all lamports of an account to another and closes it. Accounts:
// account, destination, owner. An account that is not native must have no tokens.
func (c *call) closeAccount() error {
	ref, to := c.accounts[0], c.accounts[1]
	if ref.Key() == to.Key() {
		return bank.ErrInvalidAccountData
	}
	account, err := openAccount(ref)
	if err != nil {
		return err
	}
	if account.IsNative == nil && account.Amount != 0 {
		return ErrNonNativeHasBalance
	}
	if err := checkAuthority(account.Owner, c.accounts[2]); err != nil {
		return err
	}
	return ref.Close(to)
}

// syncNative sets the amount of a native account to its lamports above the reserve.
func (c *call) syncNative() error {
	ref := c.accounts[0]
	if err := c.checkOwned(ref); err != nil {
		return err
	}
	account, err := openAccount(ref)
	switch {
	case err != nil:
		return err
	case account.IsNative == nil:
		return ErrNonNativeNotSupported
	case ref.Lamports() < *account.IsNative:
		return ErrOverflow
	case ref.Lamports()-*account.IsNative < account.Amount:
		return ErrInvalidState
	}
	account.Amount = ref.Lamports() - *account.IsNative
	return ref.SetData(encode(account))
}

// setOwner is SetAuthority. It changes only the owner of an account. Accounts:
// account, owner. Data: authority type, new owner.
func (c *call) setOwner() error {
	newOwner, err := optionalKey(c.args[1:])
	if err != nil {
		return err
	}
	account, err := openAccount(c.accounts[0])
	switch {
	case err != nil:
		return err
	case account.State == spl.Frozen:
		return ErrAccountFrozen
	case spl.AuthorityType(c.args[0]) != spl.AuthorityAccountOwner:
		return ErrAuthorityTypeNotSupported
	}
	if err := checkAuthority(account.Owner, c.accounts[1]); err != nil {
		return err
	}
	if newOwner == nil {
		return ErrInvalidInstruction
	}
	account.Owner = *newOwner
	return c.accounts[0].SetData(encode(account))
}

// setState freezes or thaws an account. Accounts: account, mint, freeze authority.
func (c *call) setState(from, to spl.AccountState) error {
	account, err := openAccount(c.accounts[0])
	switch {
	case err != nil:
		return err
	case account.State != from:
		return ErrInvalidState
	case account.IsNative != nil:
		return ErrNativeNotSupported
	case c.accounts[1].Key() != account.Mint:
		return ErrMintMismatch
	}
	mint, err := openMint(c.accounts[1])
	if err != nil {
		return err
	}
	if mint.FreezeAuthority == nil {
		return ErrMintCannotFreeze
	}
	if err := checkAuthority(*mint.FreezeAuthority, c.accounts[2]); err != nil {
		return err
	}
	account.State = to
	return c.accounts[0].SetData(encode(account))
}
