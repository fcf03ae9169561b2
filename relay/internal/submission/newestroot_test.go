package submission_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/commitments"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// index knows how many leaves the tree had with each of these roots.
type index struct {
	submission.LeafIndex
	counts map[[32]byte]uint64
	recent commitments.Recent
}

func (x index) Since(root [32]byte) (r commitments.Recent, ok bool) {
	r = x.recent
	r.FromIndex, ok = x.counts[root]
	return r, ok
}

func TestNewestRootIsNeverBehindTheTreeAccount(t *testing.T) {
	t.Parallel()
	own, newest := [32]byte{1}, [32]byte{2}
	tree := &shieldpool.TreeAccount{Root: newest, NextIndex: 8}
	withoutLeaves := commitments.Recent{Root: newest, NextIndex: 8}
	recent := func(root [32]byte, next uint64) commitments.Recent {
		return commitments.Recent{Root: root, FromIndex: 4, NextIndex: next, Leaves: []string{"a leaf"}}
	}
	other := [32]byte{3}
	type counts = map[[32]byte]uint64
	tests := map[string]struct {
		counts      counts
		index, want commitments.Recent
	}{
		"the index is as new as the tree":           {counts{own: 4, newest: 8}, recent(newest, 8), recent(newest, 8)},
		"the index is newer":                        {counts{own: 4, newest: 8, other: 9}, recent(other, 9), recent(other, 9)},
		"the index is behind":                       {counts{own: 4, other: 7}, recent(other, 7), withoutLeaves},
		"the index is on another fork":              {counts{own: 4, other: 8}, recent(other, 8), withoutLeaves},
		"the index is on a longer fork":             {counts{own: 4, other: 10}, recent(other, 10), withoutLeaves},
		"the index does not know the client's root": {counts{newest: 8}, recent(newest, 8), withoutLeaves},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &submission.Handler{Options: submission.Options{Leaves: index{counts: tt.counts, recent: tt.index}}}
			if diff := cmp.Diff(tt.want, h.NewestRoot(own, tree)); diff != "" {
				t.Errorf("newest root (-want +got):\n%s", diff)
			}
		})
	}
}
