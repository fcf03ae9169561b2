package ledger

import "github.com/gagliardetto/solana-go"

// compareWithChain sets Chain and Difference from the balances on the chain, if the payer's is among
// them.
func (l *PayerLine) compareWithChain(chain map[solana.PublicKey]uint64) {
	balance, ok := chain[l.Payer]
	if !ok {
		return
	}
	difference := int64(balance) - int64(l.Closing) //nolint:gosec // any sum of lamports fits 63 bits
	l.Chain, l.Difference = &balance, &difference
}
