package token

import (
	"encoding/binary"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/token/layout"
)

// rentSysvar takes the account that older instructions pass to tell the rent.
func (c *call) rentSysvar() error {
	account, err := c.take()
	if err != nil {
		return err
	}
	if account.Key() != solana.SysVarRentPubkey {
		return bank.ErrInvalidArgument
	}
	return nil
}

// initializeMint is InitializeMint and InitializeMint2: accounts mint and, of
// the first, the rent sysvar; data decimals, authority, optional freeze
// authority.
func (c *call) initializeMint() error {
	if len(c.args) == 0 {
		return ErrInvalidInstruction
	}
	mint := layout.Mint{Decimals: c.args[0], Initialized: true}
	authority, err := readKey(c.args[1:])
	if err != nil {
		return err
	}
	mint.Authority = &authority
	if mint.FreezeAuthority, err = readOptionalKey(c.args[1+solana.PublicKeyLength:]); err != nil {
		return err
	}
	ref, err := c.take()
	if err != nil {
		return err
	}
	if c.tag == tagInitializeMint {
		if err := c.rentSysvar(); err != nil {
			return err
		}
	}
	old, err := layout.ParseMint(ref.Data())
	switch {
	case err != nil:
		return bank.ErrInvalidAccountData
	case old.Initialized:
		return ErrAlreadyInUse
	case !rentExempt(ref):
		return ErrNotRentExempt
	}
	mint.Supply = old.Supply
	return ref.SetData(mint.Bytes())
}

// initializeAccount is InitializeAccount and its successors: accounts new
// account, mint, of the first the owner, which is data of the others, and of
// the first two the rent sysvar.
func (c *call) initializeAccount() error {
	var ref, mintRef *bank.AccountRef
	if err := c.takeAll(&ref, &mintRef); err != nil {
		return err
	}
	owner, err := c.newOwner()
	if err != nil {
		return err
	}
	if c.tag == tagInitializeAccount || c.tag == tagInitializeAccount2 {
		if err := c.rentSysvar(); err != nil {
			return err
		}
	}
	old, err := layout.ParseAccount(ref.Data())
	switch {
	case err != nil:
		return bank.ErrInvalidAccountData
	case old.State != layout.Uninitialized:
		return ErrAlreadyInUse
	case !rentExempt(ref):
		return ErrNotRentExempt
	}
	account := layout.Account{Mint: mintRef.Key(), Owner: owner, State: layout.Initialized}
	if mintRef.Key() == solana.WrappedSol {
		reserve := bank.RentExemption(layout.AccountSize)
		account.Native = &reserve
		account.Amount = ref.Lamports() - reserve
	} else if err := c.checkMint(mintRef); err != nil {
		return err
	}
	return ref.SetData(account.Bytes())
}

// newOwner gives the owner that InitializeAccount takes from an account and
// its successors from their data.
func (c *call) newOwner() (solana.PublicKey, error) {
	if c.tag != tagInitializeAccount {
		return readKey(c.args)
	}
	ref, err := c.take()
	if err != nil {
		return solana.PublicKey{}, err
	}
	return ref.Key(), nil
}

// checkMint refuses what is no mint of this program.
func (c *call) checkMint(ref *bank.AccountRef) error {
	if err := c.owned(ref); err != nil {
		return err
	}
	if _, err := openMint(ref); err != nil {
		return ErrInvalidMint
	}
	return nil
}

// accountDataSize returns the size of an account of a mint.
func (c *call) accountDataSize() error {
	mint, err := c.take()
	if err != nil {
		return err
	}
	if err := c.checkMint(mint); err != nil {
		return err
	}
	c.SetReturnData(binary.LittleEndian.AppendUint64(nil, layout.AccountSize))
	return nil
}

// initializeImmutableOwner does nothing, as in the real program: accounts here
// can change their owner.
func (c *call) initializeImmutableOwner() error {
	ref, err := c.take()
	if err != nil {
		return err
	}
	account, err := layout.ParseAccount(ref.Data())
	switch {
	case err != nil:
		return bank.ErrInvalidAccountData
	case account.State != layout.Uninitialized:
		return ErrAlreadyInUse
	}
	c.Log("Program log: Please upgrade to SPL Token 2022 for immutable owner support")
	return nil
}
