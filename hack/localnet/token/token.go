// Package token has the token programs of the local chain. SPL Token and the Associated Token
// Account program have the accounts and errors of the real programs, and the instructions that the
// relay and its tests use. Token-2022 is a program that refuses every instruction.
//
// The other instructions of SPL Token (delegates, multisignatures, amounts as
// text, the older forms of initialisation) fail with InvalidInstruction. The
// compute units are close to those of the real programs.
package token

import (
	"bytes"
	"encoding/binary"

	bin "github.com/gagliardetto/binary"
	"github.com/gagliardetto/solana-go"
	spl "github.com/gagliardetto/solana-go/programs/token"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

// Programs are the programs of this package, for bank.Options.
func Programs() []bank.Program {
	return []bank.Program{
		{ID: solana.TokenProgramID, Account: bank.ProgramAccount(), Process: process(instructions())},
		{ID: solana.SPLAssociatedTokenAccountProgramID, Account: bank.ProgramAccount(), Process: processAssociated},
		// Token-2022 is here so that tests can have mints that clients must refuse.
		{ID: solana.Token2022ProgramID, Account: bank.ProgramAccount(), Process: func(v *bank.Invocation) error {
			v.Log("Program log: Error: Token-2022 is not part of this chain")
			return bank.ErrUnsupportedProgramID
		}},
	}
}

// NativeMint is the account of the native mint, solana.WrappedSol, at genesis.
func NativeMint() bank.Account { return MintAccount(spl.Mint{Decimals: 9, IsInitialized: true}) }

// MintAccount is the account of a mint of SPL Token, for the accounts at genesis.
func MintAccount(mint spl.Mint) bank.Account {
	return bank.Account{Lamports: bank.RentExemption(bank.TokenMintSize), Data: encode(mint), Owner: solana.TokenProgramID}
}

// Account is a token account, for the accounts at genesis. The lamports of a native
// account are the sum of its reserve (IsNative) and its amount.
func Account(account spl.Account) bank.Account {
	lamports := bank.RentExemption(bank.TokenAccountSize)
	if account.IsNative != nil {
		lamports = *account.IsNative + account.Amount
	}
	return bank.Account{Lamports: lamports, Data: encode(account), Owner: solana.TokenProgramID}
}

func encode(account bin.BinaryMarshaler) []byte {
	var data bytes.Buffer
	if err := account.MarshalWithEncoder(bin.NewBinEncoder(&data)); err != nil {
		panic(err) // cannot happen: writing to a buffer does not fail
	}
	return data.Bytes()
}

type instruction struct {
	name  string
	units uint64
	// accounts is the number of accounts that the instruction needs. args is the
	// smallest number of bytes after its tag.
	accounts, args int
	run            func(*call) error
}

func instructions() map[byte]instruction {
	const amount, key = 8, solana.PublicKeyLength
	return map[byte]instruction{
		spl.Instruction_Transfer:           {"Transfer", 4_645, 3, amount, (*call).transfer},
		spl.Instruction_SetAuthority:       {"SetAuthority", 3_167, 2, 2, (*call).setOwner},
		spl.Instruction_MintTo:             {"MintTo", 4_538, 3, amount, (*call).mintTo},
		spl.Instruction_Burn:               {"Burn", 4_753, 3, amount, (*call).burn},
		spl.Instruction_CloseAccount:       {"CloseAccount", 2_916, 3, 0, (*call).closeAccount},
		spl.Instruction_FreezeAccount:      {"FreezeAccount", 4_265, 3, 0, func(c *call) error { return c.setState(spl.Initialized, spl.Frozen) }},
		spl.Instruction_ThawAccount:        {"ThawAccount", 4_267, 3, 0, func(c *call) error { return c.setState(spl.Frozen, spl.Initialized) }},
		spl.Instruction_SyncNative:         {"SyncNative", 3_045, 1, 0, (*call).syncNative},
		spl.Instruction_InitializeAccount3: {"InitializeAccount3", 4_241, 2, key, (*call).initializeAccount},
		spl.Instruction_InitializeMint2:    {"InitializeMint2", 2_827, 1, 2 + key, (*call).initializeMint},
		tagAccountDataSize:                 {"GetAccountDataSize", 1_569, 1, 0, (*call).accountDataSize},
		tagInitializeImmutableOwner:        {"InitializeImmutableOwner", 1_405, 1, 0, (*call).initializeImmutableOwner},
	}
}

type call struct {
	*bank.Invocation
	// args are the instruction's data after its tag.
	args []byte
	// accounts are the accounts that the instruction needs, without further ones.
	accounts []*bank.AccountRef
}

// process returns the Process function of a program with the given instructions.
func process(instructions map[byte]instruction) func(*bank.Invocation) error {
	return func(v *bank.Invocation) error {
		err := dispatch(v, instructions)
		if code, ok := err.(bank.CustomError); ok { //nolint:errorlint // this program invokes no other and wraps nothing
			v.Log("Program log: Error: %s", errorText(code))
		}
		return err
	}
}

func dispatch(v *bank.Invocation, instructions map[byte]instruction) error {
	if len(v.Data) == 0 {
		return ErrInvalidInstruction
	}
	ix, ok := instructions[v.Data[0]]
	if !ok {
		return ErrInvalidInstruction
	}
	v.Log("Program log: Instruction: " + ix.name)
	if err := v.Consume(ix.units); err != nil {
		return err
	}
	c := &call{Invocation: v, args: v.Data[1:]}
	if len(c.args) < ix.args {
		return ErrInvalidInstruction
	}
	var err error
	if c.accounts, err = v.Take(ix.accounts); err != nil {
		return err
	}
	return ix.run(c)
}

// amount is the first argument of transfer, mintTo and burn.
func (c *call) amount() uint64 { return binary.LittleEndian.Uint64(c.args) }

// optionalKey reads a byte that says whether a key follows, and the key.
func optionalKey(args []byte) (*solana.PublicKey, error) {
	switch {
	case len(args) > 0 && args[0] == 0:
		return nil, nil
	case len(args) <= solana.PublicKeyLength || args[0] != 1:
		return nil, ErrInvalidInstruction
	}
	return solana.PublicKeyFromBytes(args[1 : 1+solana.PublicKeyLength]).ToPointer(), nil
}

// openAccount reads an initialised token account. As in the real program, it does not check the
// account's owner: the runtime refuses a write to an account of another program.
func openAccount(ref *bank.AccountRef) (*spl.Account, error) {
	account := bank.ParseToken(ref.Data())
	switch {
	case account == nil:
		return nil, bank.ErrInvalidAccountData
	case account.State == spl.Uninitialized:
		return nil, bank.ErrUninitializedAccount
	}
	return account, nil
}

func openMint(ref *bank.AccountRef) (*spl.Mint, error) {
	mint := bank.ParseMint(ref.Data())
	switch {
	case mint == nil:
		return nil, bank.ErrInvalidAccountData
	case !mint.IsInitialized:
		return nil, bank.ErrUninitializedAccount
	}
	return mint, nil
}

func (c *call) checkOwned(accounts ...*bank.AccountRef) error {
	for _, account := range accounts {
		if account.Owner() != c.ProgramID {
			return bank.ErrIncorrectProgramID
		}
	}
	return nil
}

// checkAuthority checks that signer is the expected key and has signed.
func checkAuthority(expected solana.PublicKey, signer *bank.AccountRef) error {
	switch {
	case signer.Key() != expected:
		return ErrOwnerMismatch
	case !signer.IsSigner():
		return bank.ErrMissingRequiredSignature
	}
	return nil
}
