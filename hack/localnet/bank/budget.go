package bank

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
	"slices"

	"github.com/gagliardetto/solana-go"
	computebudget "github.com/gagliardetto/solana-go/programs/compute-budget"
)

// Limits and fees of mainnet.
const (
	// LamportsPerSignature is the base fee of each signature.
	LamportsPerSignature = 5000
	// DefaultUnitsPerInstruction is the compute limit that each instruction
	// adds when the transaction sets none; compute-budget instructions add none.
	DefaultUnitsPerInstruction = 200_000
	// MaxUnits is the largest compute limit of a transaction.
	MaxUnits = 1_400_000

	// maxLoadedData is the most account data that a transaction may load, in bytes.
	maxLoadedData = 64 << 20
	microLamports = 1_000_000
)

// Budget is the compute limit and the price that a transaction's compute-budget
// instructions set.
type Budget struct {
	// Units is the compute limit.
	Units uint64
	// Price is in micro-lamports a unit.
	Price uint64
	// LoadedData is the most account data that may be loaded, in bytes.
	LoadedData uint64
	// PriorityFee is in lamports, for a transaction of version 1, which names no price.
	PriorityFee *uint64
}

// budgetV1 reads the values of version 1 (SIMD-0385), in which what is not set is 0.
func (m *Message) budgetV1() (b Budget) {
	c := m.TransactionConfig
	b.PriorityFee = new(uint64)
	if c.PriorityFee != nil {
		b.PriorityFee = c.PriorityFee
	}
	if c.ComputeUnitLimit != nil {
		b.Units = min(uint64(*c.ComputeUnitLimit), MaxUnits)
	}
	if c.LoadedAccountsDataSizeLimit != nil {
		b.LoadedData = min(uint64(*c.LoadedAccountsDataSizeLimit), maxLoadedData)
	}
	if high, low := bits.Mul64(*b.PriorityFee, microLamports); b.Units > high {
		b.Price, _ = bits.Div64(high, low, b.Units)
	}
	return b
}

// Budget reads the compute-budget instructions. This chain knows two of them: the
// compute unit limit and the compute unit price. For a malformed, unknown or
// repeated instruction it returns an error, and the transaction does not land.
// Bytes after an instruction's value are allowed, as on Agave.
func (m *Message) Budget() (b Budget, _ *TransactionError) {
	if m.GetVersion() == solana.MessageVersionV1 {
		return m.budgetV1(), nil
	}
	b.LoadedData = maxLoadedData
	seen := make(map[byte]bool)
	var others uint64
	for i, ix := range m.Instructions {
		if m.Keys[ix.ProgramIDIndex] != solana.ComputeBudget {
			others++
			continue
		}
		const limit, price = computebudget.Instruction_SetComputeUnitLimit, computebudget.Instruction_SetComputeUnitPrice
		switch {
		case len(ix.Data) >= 5 && ix.Data[0] == limit:
			b.Units = uint64(binary.LittleEndian.Uint32(ix.Data[1:]))
		case len(ix.Data) >= 9 && ix.Data[0] == price:
			b.Price = binary.LittleEndian.Uint64(ix.Data[1:])
		default:
			return b, instructionFailed(i, ErrInvalidInstructionData)
		}
		if seen[ix.Data[0]] {
			return b, &TransactionError{Kind: DuplicateInstruction, Index: i}
		}
		seen[ix.Data[0]] = true
	}
	if !seen[computebudget.Instruction_SetComputeUnitLimit] {
		b.Units = others * DefaultUnitsPerInstruction
	}
	b.Units = min(b.Units, MaxUnits)
	return b, nil
}

// Fee returns the fee in lamports of a transaction with this budget and a number
// of signatures. The priority fee is charged for the whole compute limit, used or
// not, and rounded up. A fee beyond 64 bits becomes the largest uint64.
func (b Budget) Fee(signatures int) uint64 {
	fee := new(big.Int).SetUint64(b.Units)
	fee.Mul(fee, new(big.Int).SetUint64(b.Price))
	fee.Add(fee, big.NewInt(microLamports-1))
	fee.Div(fee, big.NewInt(microLamports))
	if b.PriorityFee != nil {
		fee.SetUint64(*b.PriorityFee)
	}
	fee.Add(fee, big.NewInt(int64(signatures)*LamportsPerSignature))
	if !fee.IsUint64() {
		return math.MaxUint64
	}
	return fee.Uint64()
}

// ComputeBudgetProgram accepts the compute-budget instructions: Message.Budget
// applies them before any instruction runs.
func ComputeBudgetProgram() Program {
	return Program{
		ID:      solana.ComputeBudget,
		Builtin: true,
		Account: nativeAccount("compute_budget_program"),
		Process: func(v *Invocation) error { return v.Consume(builtinUnits) },
	}
}

// nativeAccount is the account of a program that is part of the validator.
func nativeAccount(name string) Account {
	return Account{
		Lamports:   1,
		Data:       []byte(name),
		Owner:      solana.MustPublicKeyFromBase58("NativeLoader1111111111111111111111111111111"),
		Executable: true,
	}
}

// ProgramAccount is the account of an upgradeable program at its own address. On
// the network its 36 bytes point to the account with the code; here they are zero.
func ProgramAccount() Account {
	const size = 36
	return Account{
		Lamports:   RentExemption(size),
		Data:       make([]byte, size),
		Owner:      solana.BPFLoaderUpgradeableProgramID,
		Executable: true,
	}
}

func hasDuplicate(keys []solana.PublicKey) bool {
	for i, key := range keys {
		if slices.Contains(keys[:i], key) {
			return true
		}
	}
	return false
}
