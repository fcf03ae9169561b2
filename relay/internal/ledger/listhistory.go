package ledger

import (
	"context"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
)

// listHistory lists the payer's transactions from the newest back to the cursor. This may take
// several passes. It returns true once the list is complete.
func (r *Reconciler) listHistory(ctx context.Context, h *payerHistory, cursor *Cursor) (listed bool, err error) {
	if h.listed {
		return true, nil
	}
	if !h.walking {
		*h = payerHistory{payer: h.payer, gapSince: h.gapSince, walking: true, startedAt: r.Now()}
	}
	var until solana.Signature
	if cursor != nil {
		until = cursor.Signature
	}
	for range pagesPerPass {
		page, err := r.Chain.SignaturesFor(ctx, h.payer, onchain.Finalized, h.pageBefore, until, pageSize)
		if err != nil {
			return false, err
		}
		if h.addPage(page, cursor) {
			return true, nil
		}
	}
	return false, nil
}
