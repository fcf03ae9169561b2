package shieldpool

import (
	"encoding/binary"

	"github.com/gagliardetto/solana-go"
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
	// Base is the network's base fee. It changes no byte of the transaction.
	Base BaseFee
	// Tip is paid by the transaction's last instruction; none if it is zero.
	Tip Tip
}

// The first bytes of SetComputeUnitLimit and SetComputeUnitPrice.
const setLimit, setPrice = 2, 3

// Instructions set the limit and the price, for formats before V1.
func (c Compute) Instructions() []solana.Instruction {
	limit := binary.LittleEndian.AppendUint32([]byte{setLimit}, c.Limit)
	price := binary.LittleEndian.AppendUint64([]byte{setPrice}, c.Price)
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

// config is the compute budget in the header of V1. Every transaction has all three values, so
// that transactions of one kind have the same length.
func (c Compute) config() solana.TransactionConfig {
	return solana.TransactionConfig{}.WithPriorityFee(c.PriorityFee()).WithComputeUnitLimit(c.Limit).WithLoadedAccountsDataSizeLimit(c.LoadedData)
}

// PriceOf returns the price of a compute unit in micro-lamports that a serialised transaction of the
// relay offers; 0 if raw is not one.
func PriceOf(raw []byte) uint64 {
	tx, err := solana.TransactionFromBytes(raw)
	if err != nil {
		return 0
	}
	if c := tx.Message.TransactionConfig; c.PriorityFee != nil && c.ComputeUnitLimit != nil && *c.ComputeUnitLimit > 0 {
		return *c.PriorityFee * 1_000_000 / uint64(*c.ComputeUnitLimit)
	}
	for _, ix := range tx.Message.Instructions {
		if int(ix.ProgramIDIndex) < len(tx.Message.AccountKeys) && tx.Message.AccountKeys[ix.ProgramIDIndex] == solana.ComputeBudget && len(ix.Data) == 9 && ix.Data[0] == setPrice {
			return binary.LittleEndian.Uint64(ix.Data[1:])
		}
	}
	return 0
}
