package commitments

import (
	"context"
	"fmt"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
)

const (
	// firstDepth is the number of slots that the second rewind goes back; see rewind for the
	// first. It is more than an unfinalized fork can span. From the third on, each rewind goes
	// back depthGrowth times as far as the one before, so that a few rewinds reach the tree's
	// first leaf.
	firstDepth, depthGrowth = 512, 16
	// firstRetryDelay and maxRetryDelay bound the wait after a rewind that did not help. The
	// wait doubles at most maxDoublings times.
	firstRetryDelay, maxRetryDelay, maxDoublings = time.Second, 10 * time.Minute, 10
)

// scheduleRetry delays the next rewind. Without the delay, an endpoint with a short history would
// be read from the start again and again.
func (f *Follower) scheduleRetry(err error) error {
	f.retryAt = f.Now().Add(min(maxRetryDelay, firstRetryDelay<<min(f.failures, maxDoublings)))
	f.failures++
	f.lastFailure = err
	return err
}

// rewind removes leaves, so that they are read again. The first rewind removes the leaves after
// the confirmed prefix. If there is no such prefix, or it has all leaves, the first rewind goes
// back firstDepth slots. Each further rewind removes more, because a fork can also move correct
// leaves to other slots. Leaves that the endpoint no longer has are kept, unless the chain
// disproves them.
func (f *Follower) rewind(ctx context.Context, pos Position, snap onchain.Snapshot) error {
	kept, err := f.publishPrefix(ctx, &pos, snap)
	if err != nil {
		return err
	}
	slot := kept.slot
	if f.rewinds > 1 || !kept.ok || kept.leaves == pos.Leaves {
		if !kept.ok {
			slot = pos.Slot
		}
		first, err := f.Chain.FirstAvailableBlock(ctx)
		if err != nil {
			return fmt.Errorf("find the start of the RPC's history: %w", err)
		}
		slot = min(slot, max(rewindSlot(slot, f.rewinds), first-min(first, 1)))
	}
	if slot >= pos.Slot {
		return nil // another endpoint may have what follows
	}
	f.Log.WarnContext(ctx, "removing commitments that the chain does not confirm",
		"leaves", pos.Leaves, "published", pos.Published, "chain", snap.Tree.NextIndex, "read_to_slot", pos.Slot, "back_to_slot", slot)
	return f.Store.Rewind(ctx, pos, slot)
}

// rewindSlot returns the slot after which blocks are read again. rewinds is the number of rewinds
// so far, including this one.
func rewindSlot(slot uint64, rewinds int) uint64 {
	depth := uint64(firstDepth)
	for n := 2; n < rewinds && depth < slot; n++ {
		depth *= depthGrowth
	}
	return slot - min(slot, depth)
}
