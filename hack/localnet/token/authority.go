package token

import (
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/token/layout"
)

// The authorities that SetAuthority can change.
const (
	authorityMintTokens = iota
	authorityFreezeAccount
	authorityAccountOwner
	authorityCloseAccount
)

// setAuthority changes who decides over a mint or an account: accounts mint or
// account, authority of today; data kind, optional new authority.
func (c *call) setAuthority() error {
	if len(c.args) == 0 || c.args[0] > authorityCloseAccount {
		return ErrInvalidInstruction
	}
	kind := c.args[0]
	successor, err := readOptionalKey(c.args[1:])
	if err != nil {
		return err
	}
	var ref, authority *bank.AccountRef
	if err := c.takeAll(&ref, &authority); err != nil {
		return err
	}
	switch ref.Length() {
	case layout.AccountSize:
		account, err := openAccount(ref)
		if err != nil {
			return err
		}
		if account.State == layout.Frozen {
			return ErrAccountFrozen
		}
		if err := setAccountAuthority(account, authority, kind, successor); err != nil {
			return err
		}
		return ref.SetData(account.Bytes())
	case layout.MintSize:
		mint, err := openMint(ref)
		if err != nil {
			return err
		}
		if err := setMintAuthority(mint, authority, kind, successor); err != nil {
			return err
		}
		return ref.SetData(mint.Bytes())
	default:
		return bank.ErrInvalidArgument
	}
}

func setAccountAuthority(account *layout.Account, authority *bank.AccountRef, kind byte, successor *solana.PublicKey) error {
	switch kind {
	case authorityAccountOwner:
		if err := authorised(account.Owner, authority); err != nil {
			return err
		}
		if successor == nil {
			return ErrInvalidInstruction
		}
		account.Owner = *successor
		account.Delegate, account.Delegated = nil, 0
		if account.Native != nil {
			account.CloseAuthority = nil
		}
	case authorityCloseAccount:
		closer := account.Owner
		if account.CloseAuthority != nil {
			closer = *account.CloseAuthority
		}
		if err := authorised(closer, authority); err != nil {
			return err
		}
		account.CloseAuthority = successor
	default:
		return ErrAuthorityTypeNotSupported
	}
	return nil
}

func setMintAuthority(mint *layout.Mint, authority *bank.AccountRef, kind byte, successor *solana.PublicKey) error {
	switch kind {
	case authorityMintTokens:
		// A supply that was fixed stays so.
		if mint.Authority == nil {
			return ErrFixedSupply
		}
		if err := authorised(*mint.Authority, authority); err != nil {
			return err
		}
		mint.Authority = successor
	case authorityFreezeAccount:
		if mint.FreezeAuthority == nil {
			return ErrMintCannotFreeze
		}
		if err := authorised(*mint.FreezeAuthority, authority); err != nil {
			return err
		}
		mint.FreezeAuthority = successor
	default:
		return ErrAuthorityTypeNotSupported
	}
	return nil
}

func (c *call) freeze() error { return c.setState(layout.Initialized, layout.Frozen) }

func (c *call) thaw() error { return c.setState(layout.Frozen, layout.Initialized) }

// setState freezes an account or thaws it: accounts account, mint, authority.
func (c *call) setState(from, to layout.State) error {
	var ref, mintRef, authority *bank.AccountRef
	if err := c.takeAll(&ref, &mintRef, &authority); err != nil {
		return err
	}
	account, err := openAccount(ref)
	if err != nil {
		return err
	}
	switch {
	case account.State != from:
		return ErrInvalidState
	case account.Native != nil:
		return ErrNativeNotSupported
	case mintRef.Key() != account.Mint:
		return ErrMintMismatch
	}
	mint, err := openMint(mintRef)
	if err != nil {
		return err
	}
	if mint.FreezeAuthority == nil {
		return ErrMintCannotFreeze
	}
	if err := authorised(*mint.FreezeAuthority, authority); err != nil {
		return err
	}
	account.State = to
	return ref.SetData(account.Bytes())
}
