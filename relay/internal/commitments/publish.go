package commitments

import (
	"context"
	"fmt"
	"time"

	"github.com/relaypool/relaypool/relay/merkle"
	"github.com/relaypool/relaypool/relay/onchain"
)

// applyVerdict publishes the leaves that the chain confirms. It returns an error if the leaves are
// wrong, if they are incomplete even after a rewind, or if they cannot be checked.
func (f *Follower) applyVerdict(ctx context.Context, c comparison) error {
	short := fmt.Errorf("%w: read %d of %d leaves", errShort, c.pos.Leaves, c.leavesBefore)
	switch c.verdict {
	case confirmed:
		f.trusted = true
		if err := f.publish(ctx, &c.pos, c.pos.Leaves); err != nil {
			return err
		}
		f.remember(c)
		f.report(c)
		f.confirmFinal(c.pos, c.snap)
		if c.pos.Leaves < c.leavesBefore && f.rewinds > 0 {
			return f.scheduleRetry(short)
		}
		if c.pos.Leaves >= c.leavesBefore {
			f.rewinds, f.distrusts, f.failures, f.retryAt, f.lastFailure = 0, 0, 0, time.Time{}, nil
		}
		return nil
	case wrong:
		if _, err := f.publishPrefix(ctx, &c.pos, c.snap); err != nil {
			return err
		}
		f.report(c)
		if c.pos.Leaves < c.leavesBefore {
			return f.scheduleRetry(short)
		}
		return f.scheduleRetry(fmt.Errorf("%w: read %d leaves, the chain has %d", errMismatch, c.pos.Leaves, c.snap.Tree.NextIndex))
	case unchecked:
		f.report(c)
		return errUnchecked
	default: // inconclusive: the next pass compares again
		// What one endpoint alone showed was believed if nobody else answered. Now somebody contradicts it.
		if c.snap.Contested && c.pos.Published > c.snap.Tree.NextIndex && c.snap.Slot >= c.pos.Slot {
			if _, err := f.publishPrefix(ctx, &c.pos, c.snap); err != nil {
				return err
			}
		}
		f.report(c)
		return nil
	}
}

func (f *Follower) publish(ctx context.Context, pos *Position, leaves uint64) error {
	if pos.Published == leaves {
		return nil
	}
	if err := f.Store.Publish(ctx, *pos, leaves); err != nil {
		return err
	}
	if leaves < pos.Published { // Since must not return what was withdrawn
		f.forget(f.tree.NextIndex())
	}
	pos.Published = leaves
	return nil
}

// prefix is the longest series of leaves, from the tree's first leaf to the end of a slot, whose
// root is in the chain's root history. Where the history has no root at the number of published leaves, these are
// such a series too, unless it contradicts them at a lower number. slot is the slot at whose end it stops.
type prefix struct {
	ok           bool
	leaves, slot uint64
}

// publishPrefix publishes the longest prefix of the leaves that the chain confirms. If there is
// none, it withdraws the published leaves if their root should still be in the root history: the
// leaves are wrong then. If their root may have left the history, they stay published.
func (f *Follower) publishPrefix(ctx context.Context, pos *Position, snap onchain.Snapshot) (prefix, error) {
	p, err := f.confirmedPrefix(ctx, *pos, snap)
	if err != nil {
		return p, err
	}
	oldest, _ := window(snap)
	switch {
	case p.ok:
		return p, f.publish(ctx, pos, p.leaves)
	case pos.Published >= oldest:
		return p, f.publish(ctx, pos, 0)
	default:
		return p, nil
	}
}

func (f *Follower) confirmedPrefix(ctx context.Context, pos Position, snap onchain.Snapshot) (p prefix, err error) {
	oldest, newest := window(snap)
	if oldest > pos.Leaves {
		return p, nil
	}
	// A checkpoint may lie inside a slot, so it has to be before the window.
	tree, err := f.restore(ctx, pos.Generation, oldest-min(oldest, 1))
	if err != nil {
		return p, err
	}
	var last uint64
	var disproved bool
	look := func(endOfSlot bool) {
		n := tree.NextIndex()
		if n < oldest || n > newest {
			return
		}
		root := tree.Root()
		shown, known := snap.Tree.RootAt(n)
		switch {
		case known && shown != merkle.Bytes(&root):
			disproved = true
		case endOfSlot && (known || n == pos.Published && !disproved):
			p = prefix{true, n, last}
		}
	}
	err = f.walk(ctx, pos, tree.NextIndex(), func(l IndexedCommitment) error {
		look(l.Slot != last)
		last = l.Slot
		return appendLeaf(tree, l)
	})
	look(true)
	return p, err
}

// window returns the range of leaf counts whose roots are still in the root history, which gets
// one entry for each leaf.
func window(snap onchain.Snapshot) (oldest, newest uint64) {
	newest = snap.Tree.NextIndex
	return newest - min(newest, uint64(len(snap.Tree.History))-1), newest
}
