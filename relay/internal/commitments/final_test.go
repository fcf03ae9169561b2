package commitments_test

import (
	"testing"
)

// Each step is a pass of the follower. Every transaction has two leaves.
func TestLeavesBecomeFinal(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	f := newFollower(t, h, newStore(t, h))
	steps := []struct {
		what            string
		change          func()
		tree, finalized uint64
		wantGeneration  uint64
		wantFinal       uint64
	}{
		{"confirmed at slot 10", func() { h.block(8, h.transact()) }, 10, 5, 0, 0},
		{"slot 10 is not final", func() { h.block(11, h.transact()) }, 12, 9, 0, 0},
		{"nothing is known of finality", func() {}, 13, 0, 0, 0},
		{"the tree was read before slot 14 was final", func() {}, 13, 14, 0, 0},
		{"slot 10 is final, and a later tree has its leaves", func() {}, 15, 14, 0, 2},
		{"the leaves confirmed at slot 15 are not final", func() {}, 16, 14, 0, 2},
		{"they are", func() {}, 17, 16, 0, 4},
		{"no other endpoint confirms the tree's slot", func() { h.block(18, h.transact()); h.doubtful = true }, 1000, 999, 0, 4},
		{"a fork replaces the newest transaction", func() {
			h.doubtful = false
			h.fork(map[uint64][]uint64{8: {1}, 11: {2}, 19: {7}})
		}, 20, 16, 1, 0},
		{"its leaves at slot 20 are final", func() {}, 22, 21, 1, 6},
	}
	for _, step := range steps {
		step.change()
		h.treeSlot, h.finalized = step.tree, step.finalized
		must(t, f.Sync(t.Context(), 0))
		if generation, final := f.Final(); generation != step.wantGeneration || final != step.wantFinal {
			t.Errorf("%s: %d leaves of generation %d are final, want %d of %d", step.what, final, generation, step.wantFinal, step.wantGeneration)
		}
	}
}
