package token

import (
	"github.com/gagliardetto/solana-go"
	spl "github.com/gagliardetto/solana-go/programs/token"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

// Instruction tags, error and compute units of the Associated Token Account program.
const (
	tagCreate           = 0
	tagCreateIdempotent = 1

	// ErrInvalidOwner is the program's only error: the owner of the token account is
	// not the wallet from which the address is derived.
	ErrInvalidOwner bank.CustomError = 0

	associatedUnits = 5_500
	// bumpUnits is the cost of each bump seed that is tried to find the address.
	bumpUnits = 1_500
	// The tags of two instructions of the token program. The library does not have them.
	tagAccountDataSize          = 21
	tagInitializeImmutableOwner = 22
	// immutableOwner is the extension in the data of GetAccountDataSize.
	immutableOwner = 7
)

// CreateIdempotent builds the instruction that creates the associated token account of a wallet and
// does nothing when the account exists. The payer pays the rent.
func CreateIdempotent(payer, wallet, mint solana.PublicKey) (*solana.GenericInstruction, error) {
	address, _, err := solana.FindAssociatedTokenAddress(wallet, mint)
	if err != nil {
		return nil, err
	}
	return solana.NewInstruction(solana.SPLAssociatedTokenAccountProgramID, solana.AccountMetaSlice{
		solana.Meta(payer).SIGNER().WRITE(), solana.Meta(address).WRITE(), solana.Meta(wallet), solana.Meta(mint),
		solana.Meta(solana.SystemProgramID), solana.Meta(solana.TokenProgramID),
	}, []byte{tagCreateIdempotent}), nil
}

// processAssociated is the Associated Token Account program: Create and
// CreateIdempotent. RecoverNested fails with InvalidInstructionData.
func processAssociated(v *bank.Invocation) error {
	if err := v.Consume(associatedUnits); err != nil {
		return err
	}
	// The program's first version had no instruction data: no data means Create.
	tag := byte(tagCreate)
	if len(v.Data) > 0 {
		tag = v.Data[0]
	}
	if len(v.Data) > 1 || tag > tagCreateIdempotent {
		return bank.ErrInvalidInstructionData
	}
	v.Log("Program log: " + [...]string{"Create", "CreateIdempotent"}[tag])
	a, err := v.Take(6)
	if err != nil {
		return err
	}
	c := &creation{Invocation: v, payer: a[0], account: a[1], wallet: a[2], mint: a[3], tokenProgram: a[5]}
	return c.run(tag == tagCreateIdempotent)
}

type creation struct {
	*bank.Invocation
	payer, account, wallet, mint, tokenProgram *bank.AccountRef
}

func (c *creation) run(idempotent bool) error {
	wallet, tokenProgram, mint := c.wallet.Key(), c.tokenProgram.Key(), c.mint.Key()
	address, bump, err := solana.FindProgramAddress([][]byte{wallet[:], tokenProgram[:], mint[:]}, c.ProgramID)
	if err != nil {
		return bank.ErrInvalidSeeds
	}
	if err := c.Consume(bumpUnits * (256 - uint64(bump))); err != nil {
		return err
	}
	if address != c.account.Key() {
		c.Log("Program log: Error: Associated address does not match seed derivation")
		return bank.ErrInvalidSeeds
	}
	if idempotent && c.account.Owner() == c.tokenProgram.Key() {
		if account, err := openAccount(c.account); err == nil {
			return c.checkExisting(account)
		}
	}
	if c.account.Owner() != solana.SystemProgramID {
		return bank.ErrIllegalOwner
	}
	// The real program reads the account's size from this call's return data. Here the
	// call only checks the mint.
	if err := c.Invoke(solana.NewInstruction(tokenProgram, solana.AccountMetaSlice{solana.Meta(mint)},
		[]byte{tagAccountDataSize, immutableOwner, 0})); err != nil {
		return err
	}
	if err := c.CreateAccount(c.payer, c.account, bank.TokenAccountSize, tokenProgram, [][]byte{wallet[:], tokenProgram[:], mint[:], {bump}}); err != nil {
		return err
	}
	c.Log("Program log: Initialize the associated token account")
	if err := c.Invoke(solana.NewInstruction(tokenProgram, solana.AccountMetaSlice{solana.Meta(address).WRITE()},
		[]byte{tagInitializeImmutableOwner})); err != nil {
		return err
	}
	return c.Invoke(solana.NewInstruction(tokenProgram, solana.AccountMetaSlice{solana.Meta(address).WRITE(), solana.Meta(mint)},
		append([]byte{spl.Instruction_InitializeAccount3}, wallet[:]...)))
}

// checkExisting checks that an existing account has the requested owner and mint.
func (c *creation) checkExisting(account *spl.Account) error {
	if account.Owner != c.wallet.Key() {
		c.Log("Program log: Associated token account owner does not match address derivation")
		return ErrInvalidOwner
	}
	if account.Mint != c.mint.Key() {
		return bank.ErrInvalidAccountData
	}
	return nil
}
