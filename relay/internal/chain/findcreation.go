package chain

import (
	"context"
	"fmt"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// FindCreation finds the transaction that created the nullifier's account, and so spent the note.
// The result is at least confirmed. Call FindCreation only for an account that exists. Nil then
// means that no endpoint's history goes back far enough.
func (e *Endpoints) FindCreation(ctx context.Context, pool *shieldpool.Pool, nullifier [32]byte) (*onchain.Creation, error) {
	if pool == nil || nullifier == ([32]byte{}) {
		return nil, fmt.Errorf("finding the creation of a nullifier needs a pool and a nullifier that is not zero")
	}
	q := historyQuery("getTransaction", outbound.Read, func(ctx context.Context, source askedEndpoint) (*onchain.Creation, error) {
		return source.FindCreation(ctx, pool, nullifier)
	})
	q.unknown = isNil[onchain.Creation]
	first, origin, err := askWithIndex(ctx, e, q)
	if err != nil || first == nil || !e.hasOther(origin) {
		return first, err
	}
	address, _, err := pool.Nullifier(nullifier)
	if err != nil {
		return nil, fmt.Errorf("derive nullifier address: %w", err)
	}
	return corroborate(ctx, e, q, first, origin, func(a, b *onchain.Creation) bool {
		if a.Signature != b.Signature || a.Slot != b.Slot {
			return false
		}
		if !b.Confirmation.AtLeast(a.Confirmation) {
			a.Confirmation = b.Confirmation
		}
		return true
	}, func(ep *endpoint) bool {
		return e.accountPresence(ctx, ep, pool.Profile.ProgramID, address) == accountExists
	})
}
