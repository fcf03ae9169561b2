package chain

import (
	"context"
	"fmt"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// FindSwapEnd finds the transaction that ended the swap, whoever sent it, in the slots from first
// to last. Strangers may send transactions that name the address of the swap's state. A narrow
// range saves the reads of these. The result is at least confirmed. Nil means that the swap has not
// ended, or that no endpoint's history goes back far enough.
func (e *Endpoints) FindSwapEnd(ctx context.Context, swap *shieldpool.Swap, first, last uint64) (*onchain.SwapEnd, error) {
	if swap == nil || swap.Nullifier == ([32]byte{}) {
		return nil, fmt.Errorf("finding the end of a swap needs a swap whose nullifier is not zero")
	}
	q := historyQuery("getTransaction", outbound.Read, func(ctx context.Context, source askedEndpoint) (*onchain.SwapEnd, error) {
		return source.FindSwapEnd(ctx, swap, first, last)
	})
	q.unknown = isNil[onchain.SwapEnd]
	end, origin, err := askWithIndex(ctx, e, q)
	if err != nil || end == nil || !e.hasOther(origin) {
		return end, err
	}
	return corroborate(ctx, e, q, end, origin, func(a, b *onchain.SwapEnd) bool {
		if a.Signature != b.Signature || a.How != b.How || a.Slot != b.Slot {
			return false
		}
		if !b.Confirmation.AtLeast(a.Confirmation) {
			a.Confirmation = b.Confirmation
		}
		return true
	}, func(ep *endpoint) bool {
		return e.accountPresence(ctx, ep, swap.Pool.Profile.ProgramID, swap.State) == accountMissing
	})
}
