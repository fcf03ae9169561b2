// Package token is the token programs of the local chain: SPL Token and the
// Associated Token Account program with the instructions, accounts and errors
// of the real ones, and Token-2022 as a program that refuses everything.
//
// Multisignature accounts and the conversion of amounts to text are not part
// of it: their instructions fail with InvalidInstruction. Compute units are a
// model, near what the real programs use.
package token

import (
	"encoding/binary"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/token/layout"
)

// Programs are the programs of this package, for bank.Options.
func Programs() []bank.Program { return []bank.Program{Program(), AssociatedProgram(), Program2022()} }

// Program is SPL Token.
func Program() bank.Program {
	known := instructions()
	return bank.Program{
		ID: solana.TokenProgramID, Account: bank.ProgramAccount(),
		Process: func(v *bank.Invocation) error { return process(v, known) },
	}
}

// NativeMint is the account of the native mint, solana.WrappedSol, at genesis.
func NativeMint() bank.Account {
	return MintAccount(layout.Mint{Decimals: layout.NativeDecimals, Initialized: true})
}

// MintAccount is the account of a mint of SPL Token, to be put on the chain at
// genesis.
func MintAccount(mint layout.Mint) bank.Account {
	return bank.Account{
		Lamports: bank.RentExemption(layout.MintSize), Data: mint.Bytes(), Owner: solana.TokenProgramID,
	}
}

// Account is a token account, to be put on the chain at genesis: of a native
// one the lamports are its reserve and its amount together.
func Account(account layout.Account) bank.Account {
	lamports := bank.RentExemption(layout.AccountSize)
	if account.Native != nil {
		lamports = *account.Native + account.Amount
	}
	return bank.Account{Lamports: lamports, Data: account.Bytes(), Owner: solana.TokenProgramID}
}

// instruction is one instruction of SPL Token.
type instruction struct {
	name  string
	units uint64
	run   func(*call) error
}

// instructions are those of SPL Token, by their tags.
func instructions() map[byte]instruction {
	return map[byte]instruction{
		0:  {"InitializeMint", 2_967, (*call).initializeMint},
		1:  {"InitializeAccount", 4_527, (*call).initializeAccount},
		3:  {"Transfer", 4_645, (*call).transfer},
		4:  {"Approve", 2_904, (*call).approve},
		5:  {"Revoke", 2_677, (*call).revoke},
		6:  {"SetAuthority", 3_167, (*call).setAuthority},
		7:  {"MintTo", 4_538, (*call).mintTo},
		8:  {"Burn", 4_753, (*call).burn},
		9:  {"CloseAccount", 2_916, (*call).closeAccount},
		10: {"FreezeAccount", 4_265, (*call).freeze},
		11: {"ThawAccount", 4_267, (*call).thaw},
		12: {"TransferChecked", 6_200, (*call).transfer},
		13: {"ApproveChecked", 4_459, (*call).approve},
		14: {"MintToChecked", 4_545, (*call).mintTo},
		15: {"BurnChecked", 4_754, (*call).burn},
		16: {"InitializeAccount2", 4_388, (*call).initializeAccount},
		17: {"SyncNative", 3_045, (*call).syncNative},
		18: {"InitializeAccount3", 4_241, (*call).initializeAccount},
		20: {"InitializeMint2", 2_827, (*call).initializeMint},
		21: {"GetAccountDataSize", 1_569, (*call).accountDataSize},
		22: {"InitializeImmutableOwner", 1_405, (*call).initializeImmutableOwner},
	}
}

// The instructions that one function carries out with another, by their tags.
const (
	tagInitializeMint     = 0
	tagInitializeAccount  = 1
	tagTransferChecked    = 12
	tagApproveChecked     = 13
	tagMintToChecked      = 14
	tagBurnChecked        = 15
	tagInitializeAccount2 = 16
)

// call is one instruction while it runs.
type call struct {
	*bank.Invocation
	tag byte
	// args are the instruction's data behind its tag.
	args []byte
	// next is the position of the account that take gives next.
	next int
}

func process(v *bank.Invocation, known map[byte]instruction) error {
	err := dispatch(v, known)
	if code, ok := err.(bank.CustomError); ok { //nolint:errorlint // this program invokes no other and wraps nothing
		v.Log("Program log: Error: %s", errorText(code))
	}
	return err
}

func dispatch(v *bank.Invocation, known map[byte]instruction) error {
	if len(v.Data) == 0 {
		return ErrInvalidInstruction
	}
	ix, ok := known[v.Data[0]]
	if !ok {
		return ErrInvalidInstruction
	}
	v.Log("Program log: Instruction: " + ix.name)
	if err := v.Consume(ix.units); err != nil {
		return err
	}
	return ix.run(&call{Invocation: v, tag: v.Data[0], args: v.Data[1:]})
}

// take gives the next account of the instruction.
func (c *call) take() (*bank.AccountRef, error) {
	account, err := c.Account(c.next)
	c.next++
	return account, err
}

// takeAll gives the next accounts of the instruction.
func (c *call) takeAll(to ...**bank.AccountRef) error {
	for _, t := range to {
		var err error
		if *t, err = c.take(); err != nil {
			return err
		}
	}
	return nil
}

// amount reads the amount that most instructions begin with.
func (c *call) amount() (uint64, error) {
	if len(c.args) < 8 {
		return 0, ErrInvalidInstruction
	}
	return binary.LittleEndian.Uint64(c.args), nil
}

// decimals reads what a checked instruction has behind its amount.
func (c *call) decimals() (uint8, error) {
	const at = 8
	if len(c.args) <= at {
		return 0, ErrInvalidInstruction
	}
	return c.args[at], nil
}

// readKey reads a key at the start of args.
func readKey(args []byte) (solana.PublicKey, error) {
	if len(args) < solana.PublicKeyLength {
		return solana.PublicKey{}, ErrInvalidInstruction
	}
	return solana.PublicKeyFromBytes(args[:solana.PublicKeyLength]), nil
}

// readOptionalKey reads a key behind a byte that says whether there is one.
func readOptionalKey(args []byte) (*solana.PublicKey, error) {
	if len(args) == 0 || args[0] > 1 {
		return nil, ErrInvalidInstruction
	}
	if args[0] == 0 {
		return nil, nil
	}
	key, err := readKey(args[1:])
	return &key, err
}

// openAccount reads an initialised token account. Like the real program it
// leaves it to the runtime to refuse a write to one that it does not own.
func openAccount(ref *bank.AccountRef) (*layout.Account, error) {
	account, err := layout.ParseAccount(ref.Data())
	switch {
	case err != nil:
		return nil, bank.ErrInvalidAccountData
	case account.State == layout.Uninitialized:
		return nil, bank.ErrUninitializedAccount
	}
	return account, nil
}

// openMint reads an initialised mint.
func openMint(ref *bank.AccountRef) (*layout.Mint, error) {
	mint, err := layout.ParseMint(ref.Data())
	switch {
	case err != nil:
		return nil, bank.ErrInvalidAccountData
	case !mint.Initialized:
		return nil, bank.ErrUninitializedAccount
	}
	return mint, nil
}

// owned refuses an account of another program.
func (c *call) owned(accounts ...*bank.AccountRef) error {
	for _, account := range accounts {
		if account.Owner() != c.ProgramID {
			return bank.ErrIncorrectProgramID
		}
	}
	return nil
}

// authorised refuses a signer that is not the one expected, or did not sign.
func authorised(expected solana.PublicKey, signer *bank.AccountRef) error {
	switch {
	case signer.Key() != expected:
		return ErrOwnerMismatch
	case !signer.IsSigner():
		return bank.ErrMissingRequiredSignature
	}
	return nil
}

func rentExempt(account *bank.AccountRef) bool {
	return account.Lamports() >= bank.RentExemption(uint64(account.Length())) //nolint:gosec // a length is not negative
}
