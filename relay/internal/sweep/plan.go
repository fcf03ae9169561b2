package sweep

import "github.com/gagliardetto/solana-go"

// maxTransfers is the most transfers in one transaction: 1232 bytes would fit some
// more.
const maxTransfers = 16

// balance is what an account holds, in lamports.
type balance struct {
	key      solana.PublicKey
	lamports uint64
}

// move is a planned transaction: the transfers of one payer, at a price in
// micro-lamports a compute unit.
type move struct {
	from      solana.PublicKey
	transfers []Transfer
	price     uint64
}
