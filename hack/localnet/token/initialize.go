package token

import (
	"github.com/gagliardetto/solana-go"
	spl "github.com/gagliardetto/solana-go/programs/token"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

// initializeMint is InitializeMint2. Account: mint. Data: decimals, mint authority,
// optional freeze authority.
func (c *call) initializeMint() error {
	const authorityEnd = 1 + solana.PublicKeyLength
	freezeAuthority, err := optionalKey(c.args[authorityEnd:])
	if err != nil {
		return err
	}
	old := bank.ParseMint(c.accounts[0].Data())
	switch {
	case old == nil:
		return bank.ErrInvalidAccountData
	case old.IsInitialized:
		return ErrAlreadyInUse
	case !c.rentExempt(c.accounts[0]):
		return ErrNotRentExempt
	}
	return c.accounts[0].SetData(encode(spl.Mint{
		MintAuthority: solana.PublicKeyFromBytes(c.args[1:authorityEnd]).ToPointer(), FreezeAuthority: freezeAuthority,
		Decimals: c.args[0], IsInitialized: true,
	}))
}

func (c *call) rentExempt(account *bank.AccountRef) bool {
	return account.Lamports() >= c.Rent().Exemption(uint64(account.Length())) //nolint:gosec // a length is not negative
}

// checkUninitialised checks that an account's data is a token account that is not yet initialised.
func checkUninitialised(ref *bank.AccountRef) error {
	account := bank.ParseToken(ref.Data())
	switch {
	case account == nil:
		return bank.ErrInvalidAccountData
	case account.State != spl.Uninitialized:
		return ErrAlreadyInUse
	}
	return nil
}

// initializeAccount is InitializeAccount3. Accounts: new account, mint. Data: owner.
func (c *call) initializeAccount() error {
	ref, mint := c.accounts[0], c.accounts[1]
	if err := checkUninitialised(ref); err != nil {
		return err
	}
	if !c.rentExempt(ref) {
		return ErrNotRentExempt
	}
	account := spl.Account{Mint: mint.Key(), Owner: solana.PublicKeyFromBytes(c.args[:solana.PublicKeyLength]), State: spl.Initialized}
	if mint.Key() == solana.WrappedSol {
		reserve := c.Rent().Exemption(bank.TokenAccountSize)
		account.IsNative, account.Amount = &reserve, ref.Lamports()-reserve
	} else if err := c.checkMint(mint); err != nil {
		return err
	}
	return ref.SetData(encode(account))
}

func (c *call) checkMint(ref *bank.AccountRef) error {
	if err := c.checkOwned(ref); err != nil {
		return err
	}
	if _, err := openMint(ref); err != nil {
		return ErrInvalidMint
	}
	return nil
}

// accountDataSize is GetAccountDataSize. Account: mint. It does not return the size of
// a token account, because this chain has no return data.
func (c *call) accountDataSize() error { return c.checkMint(c.accounts[0]) }

// initializeImmutableOwner changes nothing, as in the real program: accounts of SPL
// Token can change their owner.
func (c *call) initializeImmutableOwner() error {
	if err := checkUninitialised(c.accounts[0]); err != nil {
		return err
	}
	c.Log("Program log: Please upgrade to SPL Token 2022 for immutable owner support")
	return nil
}
