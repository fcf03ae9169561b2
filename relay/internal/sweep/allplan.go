package sweep

import (
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// allPlan plans the moves that empty the payers, to the last lamport. A payer that cannot
// afford the priority fee pays no priority fee. The result leftover is the sum of the lamports
// that cannot be moved, because the network refuses a transaction whose fee alone would leave its
// payer with less than the rent-exempt minimum.
func allPlan(from []balance, to solana.PublicKey, price uint64) (moves []move, leftover uint64) {
	for _, payer := range from {
		p := price
		if payer.lamports < shieldpool.RentExempt+feeOf(p) {
			p = 0
		}
		if part := subtract(payer.lamports, feeOf(p)); part >= shieldpool.RentExempt {
			moves = append(moves, move{payer.key, []Transfer{{to, part}}, p})
		} else {
			leftover += payer.lamports
		}
	}
	return moves, leftover
}

// subtract is a - b, or 0 when b is larger.
func subtract(a, b uint64) uint64 {
	if b > a {
		return 0
	}
	return a - b
}
