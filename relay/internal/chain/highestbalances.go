package chain

import (
	"context"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/outbound"
)

// HighestBalances reads balances as Balances does, but at two endpoints if a second one answers.
// It returns the higher value for each account, and the older of the two slots. So one endpoint
// that reports too little, or has lost accounts, does not make accounts look empty.
func (e *Endpoints) HighestBalances(ctx context.Context, keys []solana.PublicKey) (lamports []uint64, slot uint64, err error) {
	q := currentQuery("getMultipleAccounts", outbound.Read, func(ctx context.Context, source askedEndpoint) (slotted[[]uint64], error) {
		return newSlotted(source.Balances(ctx, keys))
	})
	first, origin, err := askWithIndex(ctx, e, q)
	if err != nil {
		return nil, 0, err
	}
	askOthers(ctx, e, q, origin, func(_ *endpoint, second slotted[[]uint64]) bool {
		for i := range first.value {
			first.value[i] = max(first.value[i], second.value[i])
		}
		first.slot = min(first.slot, second.slot)
		return true
	})
	return first.value, first.slot, nil
}
