package token

import (
	"encoding/binary"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/token/layout"
)

// What the Associated Token Account program is asked for.
const (
	tagCreate           = 0
	tagCreateIdempotent = 1

	// ErrInvalidOwner is the program's one error: the account has another owner
	// than the wallet that it is derived from.
	ErrInvalidOwner bank.CustomError = 0

	associatedUnits = 5_500
	// bumpUnits is what each attempt to find the address costs.
	bumpUnits = 1_500
	// The token program's instructions that it calls.
	tagInitializeAccount3       = 18
	tagAccountDataSize          = 21
	tagInitializeImmutableOwner = 22
	// immutableOwner is the extension that it asks the size with.
	immutableOwner = 7
)

// AssociatedProgram is the Associated Token Account program: Create and
// CreateIdempotent. RecoverNested fails with InvalidInstructionData.
func AssociatedProgram() bank.Program {
	return bank.Program{
		ID: solana.SPLAssociatedTokenAccountProgramID, Account: bank.ProgramAccount(), Process: processAssociated,
	}
}

// Address gives the associated token account of a wallet for a mint of SPL
// Token, and its bump.
func Address(wallet, mint solana.PublicKey) (solana.PublicKey, uint8, error) {
	return associatedAddress(wallet, mint, solana.TokenProgramID)
}

func associatedAddress(wallet, mint, tokens solana.PublicKey) (solana.PublicKey, uint8, error) {
	return solana.FindProgramAddress([][]byte{wallet[:], tokens[:], mint[:]}, solana.SPLAssociatedTokenAccountProgramID)
}

// CreateIdempotent builds the instruction that makes the associated token
// account of a wallet at a payer's cost, and does nothing when it is there.
func CreateIdempotent(payer, wallet, mint solana.PublicKey) (solana.Instruction, error) {
	return associatedInstruction(tagCreateIdempotent, payer, wallet, mint)
}

// Create builds the instruction that makes the associated token account of a
// wallet and fails when it is there.
func Create(payer, wallet, mint solana.PublicKey) (solana.Instruction, error) {
	return associatedInstruction(tagCreate, payer, wallet, mint)
}

func associatedInstruction(tag byte, payer, wallet, mint solana.PublicKey) (solana.Instruction, error) {
	address, _, err := Address(wallet, mint)
	if err != nil {
		return nil, err
	}
	return solana.NewInstruction(solana.SPLAssociatedTokenAccountProgramID, solana.AccountMetaSlice{
		solana.Meta(payer).SIGNER().WRITE(),
		solana.Meta(address).WRITE(),
		solana.Meta(wallet),
		solana.Meta(mint),
		solana.Meta(solana.SystemProgramID),
		solana.Meta(solana.TokenProgramID),
	}, []byte{tag}), nil
}

func processAssociated(v *bank.Invocation) error {
	if err := v.Consume(associatedUnits); err != nil {
		return err
	}
	// Data came later than the program: none means Create.
	tag := byte(tagCreate)
	if len(v.Data) > 0 {
		tag = v.Data[0]
	}
	if len(v.Data) > 1 || tag > tagCreateIdempotent {
		return bank.ErrInvalidInstructionData
	}
	v.Log("Program log: " + [...]string{"Create", "CreateIdempotent"}[tag])
	c := &creation{Invocation: v}
	for i, to := range []**bank.AccountRef{&c.payer, &c.account, &c.wallet, &c.mint, &c.system, &c.tokens} {
		var err error
		if *to, err = v.Account(i); err != nil {
			return err
		}
	}
	return c.run(tag == tagCreateIdempotent)
}

// creation is one creation of an associated token account.
type creation struct {
	*bank.Invocation
	payer, account, wallet, mint, system, tokens *bank.AccountRef
}

func (c *creation) run(idempotent bool) error {
	address, bump, err := associatedAddress(c.wallet.Key(), c.mint.Key(), c.tokens.Key())
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
	if idempotent && c.account.Owner() == c.tokens.Key() {
		if account, err := openAccount(c.account); err == nil {
			return c.fits(account)
		}
	}
	if c.account.Owner() != solana.SystemProgramID {
		return bank.ErrIllegalOwner
	}
	size, err := c.size()
	if err != nil {
		return err
	}
	wallet, tokens, mint := c.wallet.Key(), c.tokens.Key(), c.mint.Key()
	if err := c.make(size, [][]byte{wallet[:], tokens[:], mint[:], {bump}}); err != nil {
		return err
	}
	c.Log("Program log: Initialize the associated token account")
	if err := c.Invoke(solana.NewInstruction(tokens, solana.AccountMetaSlice{solana.Meta(address).WRITE()},
		[]byte{tagInitializeImmutableOwner})); err != nil {
		return err
	}
	return c.Invoke(solana.NewInstruction(tokens, solana.AccountMetaSlice{solana.Meta(address).WRITE(), solana.Meta(mint)},
		append([]byte{tagInitializeAccount3}, wallet[:]...)))
}

// fits holds an account that is there already against what was asked for.
func (c *creation) fits(account *layout.Account) error {
	if account.Owner != c.wallet.Key() {
		c.Log("Program log: Associated token account owner does not match address derivation")
		return ErrInvalidOwner
	}
	if account.Mint != c.mint.Key() {
		return bank.ErrInvalidAccountData
	}
	return nil
}

// size asks the token program how large an account of the mint is.
func (c *creation) size() (uint64, error) {
	if err := c.Invoke(solana.NewInstruction(c.tokens.Key(), solana.AccountMetaSlice{solana.Meta(c.mint.Key())},
		[]byte{tagAccountDataSize, immutableOwner, 0})); err != nil {
		return 0, err
	}
	answer := c.ReturnData()
	switch {
	case answer.Data == nil:
		return 0, bank.ErrInvalidInstructionData
	case answer.Program != c.tokens.Key():
		return 0, bank.ErrIncorrectProgramID
	case len(answer.Data) != 8:
		return 0, bank.ErrInvalidInstructionData
	}
	return binary.LittleEndian.Uint64(answer.Data), nil
}

// make makes a rent-exempt account of the token program. Lamports that
// somebody has sent there already count.
func (c *creation) make(size uint64, seeds [][]byte) error {
	payer, address, tokens := c.payer.Key(), c.account.Key(), c.tokens.Key()
	rent := bank.RentExemption(size)
	if c.account.Lamports() == 0 {
		return c.Invoke(system.NewCreateAccountInstruction(rent, size, tokens, payer, address).Build(), seeds)
	}
	if missing := rent - min(rent, c.account.Lamports()); missing > 0 {
		if err := c.Invoke(system.NewTransferInstruction(missing, payer, address).Build()); err != nil {
			return err
		}
	}
	if err := c.Invoke(system.NewAllocateInstruction(size, address).Build(), seeds); err != nil {
		return err
	}
	return c.Invoke(system.NewAssignInstruction(tokens, address).Build(), seeds)
}
