package commitments

import "github.com/relaypool/relaypool/relay/onchain"

// finality is what the Follower knows of leaves that no fork can replace.
type finality struct {
	generation, leaves uint64 // final
	// The candidate leaves were confirmed by a tree that was read at slot.
	candidate, slot uint64
}

// Final returns how many leaves of a generation are final, as their places are: a rewind reads the
// same leaves again.
func (f *Follower) Final() (generation, leaves uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.final.generation, f.final.leaves
}

// confirmFinal is called when the chain confirms the stored leaves. Leaves that were confirmed
// before are final once the slot of that tree is finalized and a tree read after it confirms them
// again. For such a leaf to change, two forks that were confirmed would have to be abandoned.
func (f *Follower) confirmFinal(pos Position, snap onchain.Snapshot) {
	finalized := f.Finalized()
	if finalized == 0 || snap.Doubtful {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.final.generation != pos.Generation || f.final.candidate > pos.Leaves {
		f.final = finality{generation: pos.Generation}
	}
	if f.final.slot > 0 && (f.final.slot > finalized || finalized > snap.Slot || snap.Slot == f.final.slot) {
		return // the candidate is not final yet, or the tree is too old to show it, or the same
	}
	f.final.leaves, f.final.candidate, f.final.slot = f.final.candidate, pos.Leaves, snap.Slot
}
