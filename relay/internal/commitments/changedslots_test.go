package commitments_test

import (
	"context"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/commitments"
	"github.com/relaypool/relaypool/relay/onchain"
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
		"many false ones come first":       {slots: []uint64{5}, reported: append(falseSlots(), 5), blocks: 2},
		"more are reported than are tried": {slots: []uint64{4, 5, 6, 7, 8}, reported: []uint64{4, 5, 6, 7, 8}, lists: 1, blocks: 6},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, f := syncedTo3(t)
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

// falseSlots are more than are noted.
func falseSlots() (slots []uint64) {
	for slot := range uint64(20) {
		slots = append(slots, 1000+slot)
	}
	return slots
}

// syncedTo3 returns a history with a transaction in slot 3, and a follower that has read it.
func syncedTo3(t *testing.T) (*history, *commitments.Follower) {
	t.Helper()
	h := newHistory(t)
	f := newFollower(t, h, newStore(t, h))
	h.treeSlot = 3
	h.block(3, h.transact())
	must(t, f.Sync(t.Context(), 0))
	return h, f
}

// A tree may be older than its slot, if an endpoint shows old content at a new slot.
func TestSlotsAfterTheNewestLeafAreReadAgain(t *testing.T) {
	t.Parallel()
	h, f := syncedTo3(t)
	h.block(5, h.transact())
	h.old = copyOf(h.tree)
	h.block(8, h.transact())
	h.block(9, h.fail())
	h.treeSlot = 9
	f.Notice(5)
	must(t, f.Sync(t.Context(), 9))
	wantServed(t, f, 1, 2)
	h.old = nil
	must(t, f.Sync(t.Context(), 9))
	must(t, f.Sync(t.Context(), 0))
	wantServed(t, f, 1, 2, 3)
}

// leaving is an endpoint whose caller leaves while it reads a block.
type leaving struct {
	*history
	leave context.CancelFunc
}

func (l leaving) Block(ctx context.Context, _ uint64, _ solana.PublicKey) (*onchain.Block, error) {
	l.leave()
	return nil, ctx.Err()
}

func TestReportedSlotsAreKeptUntilTheyAreRead(t *testing.T) {
	t.Parallel()
	h, f := syncedTo3(t)
	h.block(5, h.transact())
	h.treeSlot = 5
	ctx, leave := context.WithCancel(t.Context())
	f.Chain = leaving{h, leave}
	if err := f.Sync(ctx, 5); err == nil {
		t.Error("a pass whose caller has left succeeds")
	}
	f.Chain = h
	h.block(6, h.transact())
	h.treeSlot = 6
	lists := h.lists
	if _, err := f.FindLanded(t.Context(), []uint64{6}, nil); err != nil {
		t.Fatal(err)
	}
	wantServed(t, f, 1, 2, 3)
	if h.lists != lists {
		t.Error("the slots are listed, although both were reported")
	}
	h.unchecked = true
	h.block(7, h.transact())
	h.treeSlot = 7
	if err := f.Sync(t.Context(), 7); err == nil {
		t.Error("leaves are compared with a tree that contradicts itself")
	}
}

func TestAllSlotsOfLandingsAreRead(t *testing.T) {
	t.Parallel()
	h, f := syncedTo3(t)
	h.block(5, h.transact())
	h.block(6, h.transact())
	h.blocks[2].UnknownVersions = 2
	h.treeSlot = 6
	lists := h.lists
	if _, err := f.FindLanded(t.Context(), []uint64{6, 5}, nil); err != nil {
		t.Fatal(err)
	}
	wantServed(t, f, 1, 2, 3)
	if h.lists != lists {
		t.Error("the slots of landings are listed")
	}
	h.block(7, h.transact())
	h.block(8, h.transact())
	h.blocks[4].UnknownVersions = 3
	h.treeSlot = 8
	if _, err := f.FindLanded(t.Context(), []uint64{8}, nil); err != nil { // not all: block 8 is read twice
		t.Fatal(err)
	}
	if r := f.Status(); r.UnknownVersions != 5 || r.Published != 10 {
		t.Errorf("the status is %+v, want 10 leaves, and each block's transactions of unknown versions once: 5", r)
	}
}
