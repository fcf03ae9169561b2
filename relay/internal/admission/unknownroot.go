package admission

import (
	"context"
	"time"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
)

// treeSlotReportDelay is the longest time until a slot that one process has observed is known
// to all relays.
const treeSlotReportDelay = 150 * time.Millisecond

// refuseUnknownRoot returns the refusal of a root that the root history does not contain. Either
// the root was evicted, or the node has not reached it yet: another process may just have given the
// root to the client. That process reports its slot to the other relays within treeSlotReportDelay,
// so refuseUnknownRoot waits for the report.
func (a *Admission) refuseUnknownRoot(ctx context.Context, root [32]byte, snap *onchain.Snapshot) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(treeSlotReportDelay):
	}
	behind, newest, err := submission.BehindNewestTreeSlot(ctx, a.Store, a.Pool.Address, snap.Slot)
	if err != nil {
		return err
	}
	if behind {
		return refusal.New(refusal.ChainUnavailable,
			"the node that this relay reads is behind, at slot %d of %d, so the relay cannot decide whether the proof's root is stale: send the same request again in a moment", snap.Slot, newest).
			Retry(momentaryRetryAfter)
	}
	if snap.Doubtful || snap.Behind {
		return refusal.New(refusal.ChainUnavailable,
			"the RPC endpoints of this relay do not agree on the chain's slot, so the relay cannot decide whether the proof's root is stale: send the same request again in a moment").
			Retry(momentaryRetryAfter)
	}
	return submission.StaleRoot(root, a.Submissions.NewestRoot(root, snap.Tree))
}

const (
	// processedLookup bounds the look for a processed root, so that a stale root is refused soon.
	processedLookup = 500 * time.Millisecond
	// confirmTimeout is longer than blocks usually take to be confirmed. It is the same for requests that do
	// not wait for an outcome, because the wait is the relay's to make: it told the client the root early.
	confirmTimeout, confirmPoll = 2 * time.Second, 100 * time.Millisecond
)

// awaitRoot returns a tree account that has the root, which that of snap lacks, once the root is confirmed.
// It refuses a root that is not processed.
func (a *Admission) awaitRoot(ctx context.Context, root [32]byte, snap *onchain.Snapshot) (onchain.Snapshot, error) {
	processed := make(chan bool, 1)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, processedLookup)
		defer cancel()
		processed <- a.Submissions.Leaves.IsProcessed(ctx, root)
	}()
	refused := a.refuseUnknownRoot(ctx, root, snap)
	if !<-processed {
		return onchain.Snapshot{}, refused
	}
	waiting, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	for {
		s, err := a.State.Tree(waiting, 0)
		if err == nil && s.Checked && s.Tree.LeavesUntilEviction(root) >= 0 {
			return s, nil
		}
		select {
		case <-waiting.Done():
			return onchain.Snapshot{}, refusal.New(refusal.ChainUnavailable,
				"the proof's root is processed, but not confirmed yet: send the same request again in a moment").
				Retry(momentaryRetryAfter).Because(err)
		case <-time.After(confirmPoll):
		}
	}
}
