package arena

import (
	"context"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/hack/drill/account"
	"github.com/relaypool/relaypool/hack/drill/witness"
)

// openVault remembers what the market holds before anybody swaps.
func (a *arena) openVault(ctx context.Context) error {
	at, err := vault()
	if err != nil {
		return err
	}
	a.vault, err = a.eyes.Balance(ctx, at)
	return err
}

// swapStatuses asks for every swap of the database, those included whose clients
// never learned that they were accepted.
func (a *arena) swapStatuses(ctx context.Context) map[uuid.UUID]account.SwapStatus {
	out := make(map[uuid.UUID]account.SwapStatus)
	ids, err := a.database.swaps(ctx)
	if err != nil {
		return out // every swap is missing then, which the checks tell
	}
	for i, id := range ids {
		out[id] = witness.SwapStatus(ctx, a.http, a.relays[i%len(a.relays)].url, id)
	}
	return out
}
