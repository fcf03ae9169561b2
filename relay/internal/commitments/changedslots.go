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
	// maxChangedSlots is how many slots are read without a list of the tree's transactions.
	maxChangedSlots = readAhead
	// listFor is how long slots are listed after the reported ones were not the right ones, because a block
	// is much larger than a list.
	listFor = time.Minute
)

// noteChange notes that the tree is said to have changed at the slot; 0 if it is not known.
func (f *Follower) noteChange(slot uint64) {
	if slot == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(f.changed, slot) {
		f.changed = append(f.changed, slot)
		f.changed = f.changed[max(0, len(f.changed)-maxChangedSlots-1):] // one too many: the slots have to be listed
	}
}

// changedSlots returns the slots after the position and up to the tree's at which the tree is said to have
// changed, in order; none if there are too many, or if such reports were wrong a moment ago. It forgets slots
// up to the tree's.
func (f *Follower) changedSlots(pos Position, snap onchain.Snapshot) (slots []uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	later := make([]uint64, 0, len(f.changed))
	for _, slot := range f.changed {
		switch {
		case slot > snap.Slot:
			later = append(later, slot)
		case slot > pos.Slot:
			slots = append(slots, slot)
		}
	}
	f.changed = later
	if len(slots) > maxChangedSlots || !f.trusted || f.Now().Before(f.listUntil) {
		return nil
	}
	return oldestFirst(slots)
}

// readChanged reads the slots at which the tree is said to have changed, which saves the list of its
// transactions. It stores their leaves only if the tree has them all and its root is theirs: else a
// change was not reported, or falsely, and the slots have to be listed.
func (f *Follower) readChanged(ctx context.Context, pos Position, snap onchain.Snapshot) (c comparison, ok bool, err error) {
	slots := f.changedSlots(pos, snap)
	if len(slots) == 0 || !snap.Checked {
		return c, false, nil
	}
	next, err := f.extend(ctx, slots)
	if ctx.Err() != nil {
		return c, false, ctx.Err()
	}
	if ok = err == nil && next.isAll(snap.Tree); !ok || !slices.Equal(next.slots(), slots) {
		f.listUntil = f.Now().Add(listFor)
	}
	if !ok {
		return c, false, nil // the error is that of a slot that the list may not have
	}
	if pos, err = f.store(ctx, pos, next, slots[len(slots)-1]); err != nil {
		return c, false, err
	}
	return f.compare(pos, snap.Tree.NextIndex, snap), true, nil
}

// isAll reports whether the chain's tree has these leaves and no more.
func (e *extension) isAll(tree *shieldpool.TreeAccount) bool {
	root := e.tree.Root()
	return e.tree.NextIndex() == tree.NextIndex && merkle.Bytes(&root) == tree.Root
}

// slots returns the slots that have a leaf of the extension.
func (e *extension) slots() (slots []uint64) {
	for _, l := range e.leaves {
		slots = append(slots, l.Slot)
	}
	return slices.Compact(slots)
}
