package submission

import (
	"context"

	"github.com/gagliardetto/solana-go"
)

// BehindNewestTreeSlot reports whether a node whose answer is of the given slot has not reached the
// newest slot at which any relay observed a change of the pool's tree. While a node is behind, no
// root that it lacks counts as stale. The newest slot is returned too.
func BehindNewestTreeSlot(ctx context.Context, store Store, pool solana.PublicKey, slot uint64) (behind bool, newest uint64, err error) {
	newest, err = store.HighestTreeSlot(ctx, pool)
	return slot < newest, newest, err
}
