package swap

import (
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// refund drafts the return of all lamports to the recipient's wallet. It needs neither an
// answer from the router nor a lookup table.
func (s *Planner) refund(r *snapshot) *txmgr.Draft {
	wrapped := r.wrapped != s.memory.get(r.submission.ID).otherForm
	format := shieldpool.V0
	if s.formats()[0] == shieldpool.V1 {
		format = shieldpool.V1
	}
	return &txmgr.Draft{
		Purpose: txmgr.PurposeRefund, Format: format, EndsWork: true,
		Build: func(payer solana.PublicKey, compute shieldpool.Compute, hash solana.Hash) (*solana.Transaction, error) {
			ix, err := r.accounts.Close(payer, r.wallet, wrapped)
			if err != nil {
				return nil, err
			}
			return shieldpool.Versioned(payer, compute, hash, nil, ix)
		},
	}
}
