package shieldpool

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
)

// Compute is what a transaction asks of the block producer, and what it pays for it beyond the
// signature's fee. All transactions of one kind have the same shape, so that fees do not
// fingerprint clients.
type Compute struct {
	// Format decides where the compute budget is: V1 has it in the header, the other formats
	// have it in two instructions. The zero value stands for the formats before V1.
	Format Format
	// Limit is in compute units; Price is in micro-lamports a unit.
	Limit uint32
	Price uint64
	// LoadedData is the most account data that the transaction may load, in bytes. Only V1 sets
	// it. For the other formats the network's default applies, which is also the network's
	// maximum.
	LoadedData uint32
	// Tip is paid by the transaction's last instruction; none if it is zero.
	Tip Tip
}

// Tip is a transfer of lamports from the fee payer to a lane. It is paid only if the transaction
// succeeds.
type Tip struct {
	To       solana.PublicKey
	Lamports uint64
}

// withTip returns the instructions, followed by the transfer of the tip if there is one. The tip
// comes last, so that it changes no other instruction's index.
func (c Compute) withTip(payer solana.PublicKey, instructions []solana.Instruction) []solana.Instruction {
	if c.Tip.Lamports == 0 {
		return instructions
	}
	return append(slices.Clone(instructions), system.NewTransferInstruction(c.Tip.Lamports, payer, c.Tip.To).Build())
}

// instructions are SetComputeUnitLimit (2) and SetComputeUnitPrice (3).
func (c Compute) instructions() []solana.Instruction {
	limit := binary.LittleEndian.AppendUint32([]byte{2}, c.Limit)
	price := binary.LittleEndian.AppendUint64([]byte{3}, c.Price)
	return []solana.Instruction{
		solana.NewInstruction(solana.ComputeBudget, nil, limit),
		solana.NewInstruction(solana.ComputeBudget, nil, price),
	}
}

// PriorityFee returns what the price adds to a transaction's fee, in lamports, rounded up. In the
// formats before V1 the network computes it from the two instructions. The header of V1 contains
// it.
func (c Compute) PriorityFee() uint64 {
	const microLamports = 1_000_000
	units := uint64(c.Limit)
	return units*(c.Price/microLamports) + (units*(c.Price%microLamports)+microLamports-1)/microLamports
}

// LookupTable is an address lookup table on the chain that shortens the relay's
// transactions.
type LookupTable struct {
	Address   solana.PublicKey
	Addresses solana.PublicKeySlice
}

// Constant returns the addresses that every transaction of the pool contains. The relay's lookup
// table has to contain them.
func (p *Pool) Constant() solana.PublicKeySlice {
	return solana.PublicKeySlice{p.Address, p.MerkleTree, p.Treasury, solana.SystemProgramID}
}

// Transaction builds the call's unsigned transaction. If compute has the format V1, it builds a
// V1 transaction and ignores the lookup table. Otherwise it builds v0 with a lookup table and
// legacy without.
func (p *Pool) Transaction(payer solana.PublicKey, c *Call, compute Compute, blockhash solana.Hash, table *LookupTable) (*solana.Transaction, error) {
	ix, err := p.Instruction(payer, c)
	if err != nil {
		return nil, err
	}
	if compute.Format == V1 {
		return compute.v1(payer, blockhash, ix)
	}
	opts := []solana.TransactionOption{solana.TransactionPayer(payer)}
	if table != nil {
		opts = append(opts, solana.TransactionAddressTables(map[solana.PublicKey]solana.PublicKeySlice{table.Address: table.Addresses}))
	}
	tx, err := solana.NewTransaction(compute.withTip(payer, append(compute.instructions(), ix)), blockhash, opts...)
	if err != nil {
		return nil, fmt.Errorf("lay out transaction: %w", err)
	}
	return tx, nil
}

// Kind is a shape of transaction: all transactions of one kind differ only in the values of
// their bytes.
type Kind string

// The kinds of submission.
const (
	KindTransfer   Kind = "transfer"
	KindWithdrawal Kind = "withdrawal"
	KindSwap       Kind = "swap"
)

// Kind is the shape of the call's transaction.
func (c *Call) Kind() Kind {
	switch {
	case c.Swap != nil:
		return KindSwap
	case c.Inputs.PublicAmount < 0:
		return KindWithdrawal
	default:
		return KindTransfer
	}
}
