package market

import (
	"encoding/binary"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/token"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

// The program's custom errors, with the codes of the real router.
const (
	ErrSlippage            bank.CustomError = 6001
	ErrInvalidTokenAccount bank.CustomError = 6025
)

// The instructions' tags.
const (
	tagSetReserves = iota + 1
	tagSwap
	tagSwapShort
)

const (
	// setUnits and swapUnits are the compute units of the program itself. A swap,
	// with the token program's units, costs as much as one hop of a real router.
	setUnits  = 5_000
	swapUnits = 70_000
)

// Program returns the market program.
func Program() bank.Program {
	return bank.Program{ID: ProgramID, Account: bank.ProgramAccount(), Process: process}
}

func process(v *bank.Invocation) error {
	if len(v.Data) == 0 {
		return bank.ErrInvalidInstructionData
	}
	args := v.Data[1:]
	switch v.Data[0] {
	case tagSetReserves:
		v.Log("Program log: Instruction: SetReserves")
		return setReserves(v, args)
	case tagSwap, tagSwapShort:
		v.Log("Program log: Instruction: Swap")
		return swap(v, args, v.Data[0] == tagSwapShort)
	default:
		return bank.ErrInvalidInstructionData
	}
}

func setReserves(v *bank.Invocation, args []byte) error {
	if err := v.Consume(setUnits); err != nil {
		return err
	}
	if len(args) != 16 {
		return bank.ErrInvalidInstructionData
	}
	a, err := v.Take(3)
	if err != nil {
		return err
	}
	admin, account, vaultTokens := a[0], a[1], a[2]
	state, m, err := readMarket(account)
	switch {
	case err != nil:
		return err
	case !admin.IsSigner():
		return bank.ErrMissingRequiredSignature
	case admin.Key() != state.Admin:
		return v.Refuse(bank.ErrInvalidArgument, "only the market's admin sets its reserves")
	case vaultTokens.Key() != m.VaultTokens:
		return bank.ErrInvalidSeeds
	}
	state.Reserves = parseReserves(args)
	if err := state.checkCovered(v, vaultTokens); err != nil {
		return err
	}
	return account.SetData(state.bytes())
}

func parseReserves(args []byte) Reserves {
	return Reserves{Lamports: binary.LittleEndian.Uint64(args), Tokens: binary.LittleEndian.Uint64(args[8:])}
}

// checkCovered checks that neither reserve is 0 and that the token vault holds the reserve
// of tokens. A swap lowers both by the same amount, so that this stays true.
func (s *State) checkCovered(v *bank.Invocation, vault *bank.AccountRef) error {
	vaultTokens, err := readTokens(vault)
	if err != nil {
		return err
	}
	if s.Lamports == 0 || s.Tokens == 0 || vaultTokens.Amount < s.Tokens {
		return v.Refuse(bank.ErrInvalidArgument, "want two reserves above 0, and a vault that holds the reserve of tokens")
	}
	return nil
}

func readMarket(account *bank.AccountRef) (*State, *Market, error) {
	if account.Owner() != ProgramID {
		return nil, nil, bank.ErrUninitializedAccount
	}
	state, err := ParseState(account.Data())
	if err != nil {
		return nil, nil, bank.ErrInvalidAccountData
	}
	m, err := For(state.Mint)
	if err != nil {
		return nil, nil, bank.ErrInvalidSeeds
	}
	return state, m, nil
}

// readTokens reads a token account. For any other account it returns
// ErrInvalidTokenAccount. The token program checks the mint when tokens move.
func readTokens(account *bank.AccountRef) (*token.Account, error) {
	parsed := bank.ParseToken(account.Data())
	if account.Owner() != solana.TokenProgramID || parsed == nil || parsed.State == token.Uninitialized {
		return nil, ErrInvalidTokenAccount
	}
	return parsed, nil
}

// swap moves wrapped SOL from the user to the vault and tokens from the vault to the
// user. A short swap keeps a part of the tokens and ignores the user's minimum.
func swap(v *bank.Invocation, args []byte, short bool) error {
	if err := v.Consume(swapUnits); err != nil {
		return err
	}
	size := 16
	if short {
		size = 18
	}
	if len(args) != size {
		return bank.ErrInvalidInstructionData
	}
	in, minimum := binary.LittleEndian.Uint64(args), binary.LittleEndian.Uint64(args[8:])
	a, err := v.Take(7)
	if err != nil {
		return err
	}
	account, user, userSOL, userTokens := a[0], a[1], a[2], a[3]
	state, m, err := readMarket(account)
	if err != nil {
		return err
	}
	if err := checkTrade(a, m); err != nil {
		return err
	}
	out := state.Output(in)
	if short {
		keep := min(binary.LittleEndian.Uint16(args[16:]), MaxBPS)
		out, minimum = Scale(out, MaxBPS-uint64(keep), MaxBPS), 0
	}
	if in == 0 || in > ^state.Lamports {
		return v.Refuse(bank.ErrInvalidArgument, "want an input above 0 that fits the reserves")
	}
	if out < minimum {
		return v.Refuse(ErrSlippage, "the output is below the minimum")
	}
	state.Lamports, state.Tokens = state.Lamports+in, state.Tokens-out
	if err := account.SetData(state.bytes()); err != nil {
		return err
	}
	if err := v.Invoke(token.NewTransferInstruction(in, userSOL.Key(), m.VaultSOL, user.Key(), nil).Build()); err != nil {
		return err
	}
	if out == 0 {
		return nil
	}
	pay := token.NewTransferInstruction(out, m.VaultTokens, userTokens.Key(), m.Address, nil).Build()
	return v.Invoke(pay, append(seeds(state.Mint), []byte{m.bump}))
}

// checkTrade checks the accounts of a swap: market, user, the user's two token
// accounts, the two vaults and the token program.
func checkTrade(a []*bank.AccountRef, m *Market) error {
	account, user, vaultSOL, vaultTokens, program := a[0], a[1], a[4], a[5], a[6]
	if account.Key() != m.Address || vaultSOL.Key() != m.VaultSOL || vaultTokens.Key() != m.VaultTokens {
		return bank.ErrInvalidSeeds
	}
	if program.Key() != solana.TokenProgramID {
		return bank.ErrIncorrectProgramID
	}
	if !user.IsSigner() {
		return bank.ErrMissingRequiredSignature
	}
	for _, owned := range a[2:4] {
		tokens, err := readTokens(owned)
		if err != nil {
			return err
		}
		if tokens.Owner != user.Key() {
			return ErrInvalidTokenAccount
		}
	}
	return nil
}
