package sweep

import (
	"encoding/binary"
	"fmt"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// computeLimit is the same for all sweeps: 150 units an instruction, of which
	// there are at most maxTransfers and two, and as much again.
	computeLimit = 6000
	// systemTransfer is the system program's instruction that moves lamports.
	systemTransfer = 2
)

// compute is the compute budget at a price in micro-lamports a unit.
func compute(price uint64) shieldpool.Compute {
	return shieldpool.Compute{Limit: computeLimit, Price: price}
}

// feeOf is what a transaction costs at a price.
func feeOf(price uint64) uint64 { return shieldpool.SignatureFee + compute(price).PriorityFee() }

// build lays a move out as an unsigned legacy transaction.
func build(m *move, blockhash solana.Hash) (*solana.Transaction, error) {
	instructions := []solana.Instruction{
		solana.NewInstruction(solana.ComputeBudget, nil, binary.LittleEndian.AppendUint32([]byte{2}, computeLimit)),
		solana.NewInstruction(solana.ComputeBudget, nil, binary.LittleEndian.AppendUint64([]byte{3}, m.price)),
	}
	for _, t := range m.transfers {
		data := binary.LittleEndian.AppendUint32(nil, systemTransfer)
		instructions = append(instructions, solana.NewInstruction(solana.SystemProgramID, solana.AccountMetaSlice{
			{PublicKey: m.from, IsSigner: true, IsWritable: true}, {PublicKey: t.To, IsWritable: true},
		}, binary.LittleEndian.AppendUint64(data, t.Lamports)))
	}
	tx, err := solana.NewTransaction(instructions, blockhash, solana.TransactionPayer(m.from))
	if err != nil {
		return nil, fmt.Errorf("lay out transaction: %w", err)
	}
	return tx, nil
}

// encode gives the bytes of a transaction, with an empty signature if it has none.
func encode(tx *solana.Transaction) ([]byte, error) {
	if len(tx.Signatures) == 0 {
		tx.Signatures = make([]solana.Signature, tx.Message.Header.NumRequiredSignatures)
	}
	raw, err := tx.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("encode transaction: %w", err)
	}
	return raw, nil
}

// sign puts the key's signature on a transaction.
func sign(key Key, tx *solana.Transaction) error {
	message, err := tx.Message.MarshalBinary()
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	signature, err := key.Sign(message)
	if err != nil {
		return fmt.Errorf("sign transaction: %w", err)
	}
	tx.Signatures = []solana.Signature{signature}
	return nil
}
