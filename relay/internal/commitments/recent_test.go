package commitments_test

import (
	"context"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/commitments"
	"github.com/relaypool/relaypool/relay/merkle"
)

// rootOf hashes leaves into the root of their tree.
func rootOf(t *testing.T, leaves [][32]byte) [32]byte {
	t.Helper()
	tree := merkle.NewTree()
	for _, l := range leaves {
		e, err := merkle.FromBytes(l)
		must(t, err)
		must(t, tree.Append(&e))
	}
	root := tree.Root()
	return merkle.Bytes(&root)
}

// wantSince checks that Since has the published leaves after those that have the root, or none.
func wantSince(t *testing.T, f *commitments.Follower, root [32]byte, known bool) {
	t.Helper()
	got, ok := f.Since(root)
	if ok != known {
		t.Fatalf("Since knows a root: %t, want %t", ok, known)
	}
	if !ok {
		return
	}
	list := served(t, f)
	if got.FromIndex > got.NextIndex || got.NextIndex != uint64(len(list)) {
		t.Fatalf("Since has the leaves from %d to %d, want them up to %d", got.FromIndex, got.NextIndex, len(list))
	}
	want := []string{}
	for _, l := range list[got.FromIndex:] {
		want = append(want, hex.EncodeToString(l[:]))
	}
	if diff := cmp.Diff(want, got.Leaves); diff != "" {
		t.Errorf("the leaves since index %d (-want +got):\n%s", got.FromIndex, diff)
	}
	if rootOf(t, list[:got.FromIndex]) != root {
		t.Errorf("the leaves before index %d do not have the client's root", got.FromIndex)
	}
	if rootOf(t, list) != got.Root {
		t.Errorf("Since names a root that its %d leaves do not have", got.NextIndex)
	}
}

func TestSinceHasTheLeavesAfterARecentRoot(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	s := newStore(t, h)
	f, other := newFollower(t, h, s), newFollower(t, h, s)
	roots := [][32]byte{h.tree.Root}
	wantSince(t, f, roots[0], false) // nothing was compared with the chain yet
	must(t, other.Sync(t.Context(), 0))
	const transactions = 300
	for slot := uint64(1); slot <= transactions; slot++ {
		h.block(slot, h.transact())
		roots = append(roots, h.tree.Root)
		if slot%20 == 0 { // one of the two reads the blocks, the other what is stored
			must(t, f.Sync(t.Context(), 0))
			must(t, other.Sync(t.Context(), 0))
			f, other = other, f
		}
	}
	const oldest = transactions - commitments.MaxRecent/2
	for _, f := range []*commitments.Follower{f, other} {
		for _, n := range []int{0, 1, oldest - 1, oldest, oldest + 1, transactions - 51, transactions - 1, transactions} {
			wantSince(t, f, roots[n], n >= oldest)
		}
		wantSince(t, f, [32]byte{31: 1}, false)
	}

	restarted := newFollower(t, h, s)
	must(t, restarted.Sync(t.Context(), 0))
	wantSince(t, restarted, roots[transactions], true)
	wantSince(t, restarted, roots[transactions-5], false) // its leaves were before the checkpoint

	h.block(transactions+1, h.transact())
	wantSince(t, f, roots[transactions], true) // until the next pass, the list is as it was
	if got, _ := f.Since(roots[transactions]); len(got.Leaves) != 0 {
		t.Errorf("Since has %d leaves after the newest root, want none", len(got.Leaves))
	}
}

func TestSinceForgetsADeadFork(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	s := newStore(t, h)
	f, other := newFollower(t, h, s), newFollower(t, h, s)
	var roots [][32]byte
	for slot := uint64(1); slot <= 3; slot++ {
		h.block(slot, h.transact())
		roots = append(roots, h.tree.Root)
	}
	must(t, f.Sync(t.Context(), 0))
	must(t, other.Sync(t.Context(), 0))
	h.fork(map[uint64][]uint64{1: {1}, 2: {4}, 3: {5}}) // as many leaves, two of them others
	must(t, f.Sync(t.Context(), 0))
	must(t, other.Sync(t.Context(), 0))
	wantSince(t, f, roots[0], true)
	for _, f := range []*commitments.Follower{f, other} {
		wantSince(t, f, h.tree.Root, true)
		wantSince(t, f, roots[1], false)
		wantSince(t, f, roots[2], false)
	}

	h.set(func() { h.unlisted[4] = true }) // the tree is ahead of the list of transactions, and the fork dies
	h.fork(map[uint64][]uint64{1: {1}, 2: {4}, 3: {5}, 4: {6}})
	dead := h.tree.Root
	must(t, f.Sync(t.Context(), 0))
	h.fork(map[uint64][]uint64{1: {1}, 2: {4}, 3: {5}, 5: {7}})
	must(t, f.Sync(t.Context(), 0))
	wantSince(t, f, h.tree.Root, true)
	wantSince(t, f, dead, false)
}

// withoutFind is a store that is not asked for leaves.
type withoutFind struct{ commitments.Store }

func (withoutFind) Find(context.Context, [][32]byte) (map[[32]byte]uint64, error) {
	return nil, errors.New("the database is asked")
}

func TestLandedLeavesAreFoundInMemory(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	s := newStore(t, h)
	f, asking := newFollower(t, h, withoutFind{s}), newFollower(t, h, s)
	const transactions = 2 * commitments.MaxRecent // twice as many leaves as are kept
	for n := range uint64(transactions) {
		h.block(n+1, h.transact())
	}
	var newest, all [][32]byte
	for n := range uint64(transactions) {
		all = append(all, leaf(n+1, 0), leaf(n+1, 1))
	}
	newest = all[len(all)-commitments.MaxRecent:]
	got, err := f.FindLanded(t.Context(), []uint64{transactions}, newest)
	must(t, err)
	for i, c := range newest {
		if want := uint64(len(all) - len(newest) + i); got[c] != want || len(got) != len(newest) {
			t.Fatalf("leaf %d is found at %d, and %d leaves in all; want %d leaves", want, got[c], len(got), len(newest))
		}
	}
	if _, err := f.FindLanded(t.Context(), []uint64{transactions}, all[:1]); err == nil {
		t.Error("a leaf that is not in memory is not looked for in the database")
	}
	if got, err := asking.FindLanded(t.Context(), []uint64{transactions}, all); err != nil || len(got) != len(all) || got[all[1]] != 1 {
		t.Errorf("%d of %d leaves are found (%v)", len(got), len(all), err)
	}
	h.set(func() { h.unchecked = true })
	if got, err := asking.FindLanded(t.Context(), nil, newest); err == nil || len(got) != len(newest) {
		t.Errorf("after a pass that failed, %d leaves are found (%v); want %d and the error", len(got), err, len(newest))
	}
	if got, _ := f.FindLanded(t.Context(), nil, newest); len(got) != 0 {
		t.Errorf("%d leaves are found in memory after a pass that failed", len(got))
	}
}
