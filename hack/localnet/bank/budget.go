package bank

import (
	"encoding/binary"
	"math"
	"math/big"
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

// Budget is what the compute-budget instructions of a transaction ask for.
type Budget struct {
	// Units is the compute limit.
	Units uint64
	// Price is in micro-lamports a unit.
	Price uint64
}

// Budget reads the compute-budget instructions: the limit of units and their
// price, which are all that this chain knows. A malformed or repeated one makes
// the transaction unprocessable: no fee is charged for it. Bytes after its value
// are allowed, as Agave allows them.
func (m *Message) Budget() (b Budget, _ *TransactionError) {
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
			return b, failed(i, ErrInvalidInstructionData)
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

// Fee returns the lamports that a transaction with this budget pays for
// signatures signatures: the priority part is charged for the limit, used or
// not, and rounded up.
func (b Budget) Fee(signatures int) uint64 {
	fee := new(big.Int).SetUint64(b.Units)
	fee.Mul(fee, new(big.Int).SetUint64(b.Price))
	fee.Add(fee, big.NewInt(microLamports-1))
	fee.Div(fee, big.NewInt(microLamports))
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

// ProgramAccount is what an upgradeable program has at its own address: 36
// bytes that point at its code, which does not exist here.
func ProgramAccount() Account {
	const size = 36
	return Account{
		Lamports:   RentExemption(size),
		Data:       make([]byte, size),
		Owner:      solana.BPFLoaderUpgradeableProgramID,
		Executable: true,
	}
}

// hasDuplicate reports whether a key appears twice.
func hasDuplicate(keys []solana.PublicKey) bool {
	for i, key := range keys {
		if slices.Contains(keys[:i], key) {
			return true
		}
	}
	return false
}
