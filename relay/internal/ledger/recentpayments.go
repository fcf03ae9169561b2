package ledger

import (
	"slices"
	"sync"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
)

// recentLimit bounds each half of RecentPayments, to some 3 MB.
const recentLimit = 8192

// RecentPayments are the payers' payments in confirmed blocks that this process has read for another
// purpose, so that the ledger need not call an endpoint for each. Safe for concurrent use.
type RecentPayments struct {
	payers    []solana.PublicKey
	finalized func() uint64

	mu           sync.Mutex
	newer, older map[solana.Signature]*onchain.Payment
}

// NewRecentPayments returns a RecentPayments without payments. finalized returns the newest slot that is
// known to be final, 0 if none is: payments after it are not used.
func NewRecentPayments(payers []solana.PublicKey, finalized func() uint64) *RecentPayments {
	return &RecentPayments{payers: payers, finalized: finalized, newer: map[solana.Signature]*onchain.Payment{}}
}

// Add adds the payers' payments of a block. The oldest ones are dropped when there are too many.
func (r *RecentPayments) Add(b *onchain.Block) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range b.Transactions {
		p := b.Transactions[i].Payment
		if p == nil || !slices.Contains(r.payers, p.FeePayer) {
			continue
		}
		if len(r.newer) >= recentLimit {
			r.newer, r.older = map[solana.Signature]*onchain.Payment{}, r.newer
		}
		r.newer[p.Signature] = p
	}
}

// take returns the payment of a transaction that was paid by the payer in the slot, and forgets it; nil if
// there is none, or if the slot is not final.
func (r *RecentPayments) take(signature solana.Signature, payer solana.PublicKey, slot uint64) *onchain.Payment {
	if r == nil || slot > r.finalized() {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range []map[solana.Signature]*onchain.Payment{r.newer, r.older} {
		if p := m[signature]; p != nil && p.FeePayer == payer {
			delete(m, signature)
			if p.Slot == slot { // else it was in a block of a fork
				return p
			}
		}
	}
	return nil
}
