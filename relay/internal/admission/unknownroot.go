package admission

import (
	"context"
	"fmt"
	"time"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
)

// treeSlotReportDelay is the longest time until a slot that one process has observed is known
// to all relays.
const treeSlotReportDelay = 150 * time.Millisecond

// awaitRoot returns a tree that contains a root which the tree that was read lacks, or a refusal. Either
// the root was evicted, or the node has not reached it yet: another process may just have given the
// root to the client. That process reports its slot to the other relays within treeSlotReportDelay,
// so awaitRoot waits for the report, and reads the tree again if it was read before that slot.
func (a *Admission) awaitRoot(ctx context.Context, root [32]byte, snap onchain.Snapshot) (onchain.Snapshot, error) {
	if a.isProcessed(ctx, root) {
		return snap, refusal.New(refusal.ChainUnavailable,
			"the proof's root is processed, but not confirmed yet: send the same request again in a moment").
			Retry(momentaryRetryAfter).Because(errRootNotConfirmed)
	}
	select {
	case <-ctx.Done():
		return snap, ctx.Err()
	case <-time.After(treeSlotReportDelay):
	}
	behind, newest, err := submission.BehindNewestTreeSlot(ctx, a.Store, a.Pool.Address, snap.Slot)
	if err != nil {
		return snap, err
	}
	if behind {
		if snap, err = a.State.TreeWith(ctx, root, 0); err != nil || !lacks(&snap, root) {
			return snap, err
		}
	}
	if snap.Slot < newest {
		return snap, refusal.New(refusal.ChainUnavailable,
			"the node that this relay reads is behind, at slot %d of %d, so the relay cannot decide whether the proof's root is stale: send the same request again in a moment", snap.Slot, newest).
			Retry(momentaryRetryAfter)
	}
	if snap.Doubtful || snap.Behind {
		return snap, refusal.New(refusal.ChainUnavailable,
			"the RPC endpoints of this relay do not agree on the chain's slot, so the relay cannot decide whether the proof's root is stale: send the same request again in a moment").
			Retry(momentaryRetryAfter)
	}
	return snap, submission.StaleRoot(root, a.Submissions.NewestRoot(root, snap.Tree))
}

// errRootNotConfirmed is the cause of the refusal of a processed root.
var errRootNotConfirmed = fmt.Errorf("%w: the proof's root is not confirmed yet", onchain.ErrUnavailable)

// processedLookup bounds the look for a processed root.
const processedLookup = 500 * time.Millisecond

// isProcessed reports whether GET /merkle-root may have told the root to a client before it was confirmed.
func (a *Admission) isProcessed(ctx context.Context, root [32]byte) bool {
	ctx, cancel := context.WithTimeout(ctx, processedLookup)
	defer cancel()
	return a.Submissions.Leaves.IsProcessed(ctx, root)
}
