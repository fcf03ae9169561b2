package commitments

import (
	"context"
	"slices"
	"time"

	"github.com/relaypool/relaypool/relay/merkle"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// maxChangedSlots is how many slots are read without a list of the tree's transactions. maxNotedSlots is
	// how many are noted, because some may be later than the tree.
	maxChangedSlots, maxNotedSlots = readAhead, 16
	// listFor is how long slots are listed after one was read in vain, because a block is much larger than a list.
	listFor = time.Minute
)

// noteChange notes that the tree is said to have changed at the slot; 0 if it is not known.
func (f *Follower) noteChange(slot uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if slot == 0 || slices.Contains(f.changed, slot) {
		return
	}
	f.changed = append(f.changed, slot)
	slices.Sort(f.changed)
	f.changed = f.changed[:min(len(f.changed), maxNotedSlots)] // the last ones may be false
}

// changedBetween returns the noted slots after the first one and up to the last, in order; none if they are too many.
func (f *Follower) changedBetween(after, last uint64) []uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	slots := slices.DeleteFunc(slices.Clone(f.changed), func(slot uint64) bool { return slot <= after || slot > last })
	if len(slots) > maxChangedSlots {
		return nil
	}
	return slots
}

// forgetChanges forgets the noted slots up to the last one.
func (f *Follower) forgetChanges(last uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changed = slices.DeleteFunc(f.changed, func(slot uint64) bool { return slot <= last })
}

// readChanged reads the slots at which the tree is said to have changed, which saves the list of its
// transactions. It stores their leaves only if the tree has them all and its root is theirs: else a
// report was missing or false, and the slots have to be listed.
func (f *Follower) readChanged(ctx context.Context, pos Position, snap onchain.Snapshot) (c comparison, ok bool, err error) {
	slots := f.changedBetween(pos.Slot, snap.Slot)
	if len(slots) == 0 || !f.trusted || f.Now().Before(f.listUntil) {
		f.forgetChanges(snap.Slot)
		return c, false, nil
	}
	next, err := f.extend(ctx, slots)
	if ctx.Err() != nil {
		return c, false, ctx.Err()
	}
	if ok = err == nil && next.isWhole(snap.Tree); !ok || !slices.Equal(next.slots(), slots) {
		f.listUntil = f.Now().Add(listFor)
	}
	if ok {
		// Not the last slot that was reported: the tree may be older than its slot.
		if pos, err = f.store(ctx, pos, next, next.leaves[len(next.leaves)-1].Slot); err != nil {
			return c, false, err
		}
	}
	f.forgetChanges(snap.Slot)
	if !ok {
		return c, false, nil // an error was of a block that may not have to be read
	}
	return f.compare(pos, snap.Tree.NextIndex, snap), true, nil
}

// isWhole reports whether the leaves, of which there are some, are all that the chain's tree has.
func (e *extension) isWhole(tree *shieldpool.TreeAccount) bool {
	root := e.tree.Root()
	return len(e.leaves) > 0 && e.tree.NextIndex() == tree.NextIndex && merkle.Bytes(&root) == tree.Root
}

// slots returns the slots that have a leaf of the extension.
func (e *extension) slots() (slots []uint64) {
	for _, l := range e.leaves {
		slots = append(slots, l.Slot)
	}
	return slices.Compact(slots)
}
