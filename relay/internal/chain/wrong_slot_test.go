package chain

import (
	"testing"
	"time"
)

// After one wrong slot, all later answers would count as those of a node that is behind, and the
// frozen tree would count as current.
func TestWrongSlotDoesNotFreezeTheTree(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := new(accounts)
		p, _ := newPool(t, a)
		a.set(1_000_000, p.pool.MerkleTree, treeOf(t, p.pool, 2))
		mustTree(t, p, 0)
		a.set(100, p.pool.MerkleTree, treeOf(t, p.pool, 4))
		time.Sleep(slotMaxAge / 2)
		if s := mustTree(t, p, 0); s.Tree.NextIndex != 2 {
			t.Errorf("index is %d, want 2: this node is behind", s.Tree.NextIndex)
		}
		time.Sleep(slotMaxAge)
		if s := mustTree(t, p, 0); s.Tree.NextIndex != 4 || s.Slot != 100 {
			t.Errorf("index is %d at slot %d, want 4 at 100", s.Tree.NextIndex, s.Slot)
		}
		a.set(99, p.pool.MerkleTree, treeOf(t, p.pool, 2))
		if s := mustTree(t, p, 0); s.Tree.NextIndex != 4 {
			t.Errorf("index is %d, want 4: slot 99 is behind the slot 100 that is now known", s.Tree.NextIndex)
		}
	})
}

// TestUncorroboratedSlotIsNotNewer: a relay may start while one endpoint claims to be
// ahead, before another one contradicts it.
func TestUncorroboratedSlotIsNotNewer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := new(accounts)
		p, _ := newPool(t, a)
		p.corroborated = func(slot uint64) bool { return slot < 150 }
		a.set(200, p.pool.MerkleTree, treeOf(t, p.pool, 2))
		mustTree(t, p, 0)
		a.set(100, p.pool.MerkleTree, treeOf(t, p.pool, 4))
		if s := mustTree(t, p, 0); s.Tree.NextIndex != 4 || s.Slot != 100 {
			t.Errorf("index is %d at slot %d, want 4 at 100", s.Tree.NextIndex, s.Slot)
		}
		a.set(99, p.pool.MerkleTree, treeOf(t, p.pool, 2))
		if s := mustTree(t, p, 0); s.Tree.NextIndex != 4 {
			t.Errorf("index is %d, want 4: this node is behind", s.Tree.NextIndex)
		}
	})
}
