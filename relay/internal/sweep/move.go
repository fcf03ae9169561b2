package sweep

import "github.com/gagliardetto/solana-go"

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
