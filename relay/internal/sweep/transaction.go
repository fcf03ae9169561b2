package sweep

import (
	"fmt"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// maxTransfers is the largest number of transfers in one transaction. Some more would fit into
// the 1232 bytes of a transaction.
const maxTransfers = 16

// balance is what an account holds, in lamports.
type balance struct {
	key      solana.PublicKey
	lamports uint64
}

// move is a planned transaction: the transfers of one payer, and the price in micro-lamports per
// compute unit.
type move struct {
	from      solana.PublicKey
	transfers []Transfer
	price     uint64
}

// computeLimit is the same for all sweeps. A transaction has at most maxTransfers + 2 instructions
// of 150 units each; the limit is about twice that.
const computeLimit = 6000

// compute is the compute budget at a price in micro-lamports a unit.
func compute(price uint64) shieldpool.Compute {
	return shieldpool.Compute{Limit: computeLimit, Price: price}
}

// feeOf is what a transaction costs at a price, in lamports.
func feeOf(price uint64) uint64 { return shieldpool.SignatureFee + compute(price).PriorityFee() }

// build makes the move's unsigned transaction. It implements txmgr.Build.
func (m *move) build(_ solana.PublicKey, compute shieldpool.Compute, blockhash solana.Hash) (*solana.Transaction, error) {
	instructions := compute.Instructions()
	for _, t := range m.transfers {
		instructions = append(instructions, system.NewTransferInstruction(t.Lamports, m.from, t.To).Build())
	}
	tx, err := solana.NewTransaction(instructions, blockhash, solana.TransactionPayer(m.from))
	if err != nil {
		return nil, fmt.Errorf("build transaction: %w", err)
	}
	return tx, nil
}
