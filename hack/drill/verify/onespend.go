package verify

import (
	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"
)

// oneSpend checks invariant 2, and that a submission lands once.
func oneSpend(e *Evidence, r *Result) {
	x := newIndex(e)
	for _, txs := range spendersOf(e) {
		r.Examined++
		if len(txs) > 1 {
			r.fault("transactions %s and %s spend the same nullifier", txs[0].Signature, txs[1].Signature)
		}
	}
	landed := make(map[uuid.UUID]solana.Signature)
	for i := range e.Transactions {
		tx := &e.Transactions[i]
		attempt := x.attempts[tx.Signature]
		// A move has no submission.
		if attempt == nil || tx.Failed || attempt.Purpose == PurposeMove {
			continue
		}
		if other, twice := landed[attempt.Submission]; twice {
			r.fault("request %s landed twice: %s and %s", attempt.Submission, other, tx.Signature)
		}
		landed[attempt.Submission] = tx.Signature
	}
}
