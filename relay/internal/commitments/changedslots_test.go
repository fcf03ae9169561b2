package commitments_test

import (
	"testing"
	"time"
)

// A slot that is reported is read at once. A list of the tree's transactions is read only if the reported
// slots do not have all leaves.
func TestReportedSlotsAreReadWithoutAList(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		slots    []uint64 // with a transaction each
		failed   uint64   // a slot with a transaction that failed; 0 for none
		reported []uint64
		// lists is how often slots are listed in the pass, and listsAfter in the next pass, whose slot is 20 and
		// reported. blocks is the number of blocks that both read.
		lists, listsAfter, blocks int
	}{
		"all are reported":                 {slots: []uint64{5, 6, 9}, reported: []uint64{9, 5, 6, 5}, blocks: 4},
		"none is reported":                 {slots: []uint64{5, 6}, lists: 1, blocks: 3},
		"one is not reported":              {slots: []uint64{5, 6}, reported: []uint64{6}, lists: 1, listsAfter: 1, blocks: 4},
		"the tree did not change at one":   {slots: []uint64{5, 7}, failed: 6, reported: []uint64{5, 6, 7}, listsAfter: 1, blocks: 4},
		"one is not a slot of the chain":   {slots: []uint64{5, 7}, reported: []uint64{5, 6, 7}, lists: 1, listsAfter: 1, blocks: 6},
		"one was read before":              {slots: []uint64{5}, reported: []uint64{2, 5}, blocks: 2},
		"one is later than the tree":       {slots: []uint64{5}, reported: []uint64{5, 20}, blocks: 2},
		"more are reported than are tried": {slots: []uint64{4, 5, 6, 7, 8}, reported: []uint64{4, 5, 6, 7, 8}, lists: 1, blocks: 6},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHistory(t)
			f := newFollower(t, h, newStore(t, h))
			h.treeSlot = 3
			h.block(3, h.transact())
			must(t, f.Sync(t.Context(), 0))
			want, lists, reads := []uint64{1}, h.lists, h.reads
			pass := func(slot uint64) (listed int) {
				t.Helper()
				before := h.lists
				h.block(slot, h.transact())
				h.treeSlot, want = slot, append(want, h.next)
				must(t, f.Sync(t.Context(), slot))
				wantServed(t, f, want...)
				return h.lists - before
			}
			for _, slot := range test.slots {
				h.block(slot, h.transact())
				h.treeSlot, want = slot, append(want, h.next)
			}
			if test.failed > 0 {
				h.block(test.failed, h.fail())
			}
			for _, slot := range test.reported {
				f.Notice(slot)
			}
			must(t, f.Sync(t.Context(), 0))
			wantServed(t, f, want...)
			if got := h.lists - lists; got != test.lists {
				t.Errorf("the slots were listed %d times, want %d", got, test.lists)
			}
			if got := pass(20); got != test.listsAfter {
				t.Errorf("in the next pass they were listed %d times, want %d", got, test.listsAfter)
			}
			if got := h.reads - reads; got != test.blocks {
				t.Errorf("%d blocks were read, want %d", got, test.blocks)
			}
			h.advance(time.Minute)
			if got := pass(21); got != 0 {
				t.Errorf("a minute later they were listed %d times, want none", got)
			}
		})
	}
}
