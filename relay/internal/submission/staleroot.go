package submission

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// rootLagTries is the number of tries after which a missing root counts as stale. So many tries,
// with the delays between them, take about a minute, and no usable node lags longer.
const rootLagTries = 10

// rootLag is the age of a submission from which no usable node can lag behind its root. When the
// submission was accepted, a single endpoint may have shown the root at a wrong place.
const rootLag = time.Minute

// readRoot looks for the root in the root history. If the program has reported that it does not
// know the root, readRoot reads the tree account anew.
func (h *Handler) readRoot(ctx context.Context, j *txmgr.Job, p *progress) error {
	age := h.Timing.Poll
	if p.class == shieldpool.ClassStaleProof {
		age = 0
	}
	snap, err := h.State.TreeWith(ctx, FromJob(j).Call.Inputs.Root, age)
	if err != nil {
		return txmgr.Refused(j, err)
	}
	p.tree, p.rootGoneAtTwo = snap.Tree, false
	if !snap.Doubtful {
		p.minContextSlot = max(p.minContextSlot, snap.Slot)
	}
	switch {
	case !snap.Checked:
		p.root = rootUnverifiable
	case snap.Tree.LeavesUntilEviction(FromJob(j).Call.Inputs.Root) >= 0:
		p.root = rootInHistory
	case evicted(FromJob(j).RootSeq, snap.Tree):
		p.root, p.rootGoneAtTwo = rootGone, snap.Corroborated && h.Now().Sub(j.CreatedAt) >= rootLag
	case p.lagRuledOut:
		return h.treatRootAsGone(ctx, p, snap.Slot)
	default:
		p.root = rootNotSeen
	}
	return nil
}

// treatRootAsGone sets p.root for a root that did not appear within rootLagTries. The root is gone,
// because its fork died. But while the node is behind the newest slot of the tree, the root only
// counts as not seen yet.
func (h *Handler) treatRootAsGone(ctx context.Context, p *progress, slot uint64) error {
	behind, _, err := BehindNewestTreeSlot(ctx, h.Store, h.Pool.Address, slot)
	if err != nil {
		return err
	}
	p.root = rootGone
	if behind {
		p.root = rootNotSeen
	}
	return nil
}

// evicted reports whether the tree has got enough leaves after a root to evict the root from the
// root history. If a root is missing but not evicted, the node is behind or on a fork that will
// die, or the root's own fork died.
func evicted(rootSeq uint64, t *shieldpool.TreeAccount) bool {
	return t.NextIndex >= rootSeq+uint64(len(t.History))
}

// tryRoot simulates a transaction whose root is missing from a tree account that a single endpoint
// returned: the account may be fabricated. tryRoot returns nil only if the
// simulation fails permanently, so that the submission can end. If the call's notes are too long
// for every format, tryRoot simulates the call without them: a submission that is held for its
// notes must also end when its root is gone.
func (h *Handler) tryRoot(ctx context.Context, j *txmgr.Job, p *progress) error {
	draft, err := h.draft(FromJob(j))
	if err != nil {
		draft, err = h.draft(FromJob(j).withoutNotes())
	}
	if err != nil {
		return err
	}
	failure, err := h.Manager.SimulateDraft(ctx, draft, p.minContextSlot)
	switch {
	case err != nil:
		return txmgr.Unreachable(j, err)
	case failure == nil:
		return errProgramTakesRoot
	}
	p.fail(failure)
	if !txmgr.IsPermanent(p.class) || p.class == shieldpool.ClassSpent { // the next try looks for the spender
		return fmt.Errorf("try transaction: %w", p.failure)
	}
	return nil
}

// errProgramTakesRoot reports that the program accepts a root that the tree account lacks.
var errProgramTakesRoot = errors.New("the tree account that was read lacks the root, but the program accepts it: the endpoint that answered is wrong or behind")

// errRootNotSeen reports that the node has not reached the root yet.
var errRootNotSeen = errors.New("the root history lacks the root, and too few leaves followed it to evict it: the node that answers is behind, or on another fork")
