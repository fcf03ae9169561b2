package arena

import (
	"context"
	"time"

	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/hack/load"
)

// historyInterval is the interval between two reads of the root history: several reads a slot.
const historyInterval = 100 * time.Millisecond

// recordRootHistories records the root histories that the chain's own node returns, at the two
// commitment levels that a relay may read, and the finalized slot and height.
func (a *arena) recordRootHistories(ctx context.Context) {
	for ctx.Err() == nil {
		for _, level := range []rpc.CommitmentType{rpc.CommitmentProcessed, rpc.CommitmentConfirmed} {
			if history, err := a.chainReader.RootHistory(ctx, level); err == nil {
				a.rootHistories = append(a.rootHistories, *history)
			}
		}
		if at, err := a.chainReader.Finality(ctx); err == nil {
			a.finality = append(a.finality, *at)
		}
		load.Sleep(ctx, historyInterval)
	}
}
