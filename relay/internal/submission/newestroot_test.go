package submission_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/commitments"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// index knows one root.
type index struct {
	submission.LeafIndex
	root   [32]byte
	recent commitments.Recent
}

func (x index) Since(root [32]byte) (commitments.Recent, bool) { return x.recent, root == x.root }

func TestNewestRootIsNeverBehindTheTreeAccount(t *testing.T) {
	t.Parallel()
	own, newest := [32]byte{1}, [32]byte{2}
	tree := &shieldpool.TreeAccount{Root: newest, NextIndex: 8}
	withoutLeaves := commitments.Recent{Root: newest, NextIndex: 8}
	recent := func(root [32]byte, next uint64) commitments.Recent {
		return commitments.Recent{Root: root, FromIndex: 4, NextIndex: next, Leaves: []string{"a leaf"}}
	}
	tests := map[string]struct {
		root        [32]byte
		index, want commitments.Recent
	}{
		"the index is as new as the tree":           {own, recent(newest, 8), recent(newest, 8)},
		"the index is newer":                        {own, recent([32]byte{3}, 9), recent([32]byte{3}, 9)},
		"the index is behind":                       {own, recent([32]byte{3}, 7), withoutLeaves},
		"the index is on another fork":              {own, recent([32]byte{3}, 8), withoutLeaves},
		"the index does not know the client's root": {newest, recent(newest, 8), withoutLeaves},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &submission.Handler{Options: submission.Options{Leaves: index{root: own, recent: tt.index}}}
			if diff := cmp.Diff(tt.want, h.NewestRoot(tt.root, tree)); diff != "" {
				t.Errorf("newest root (-want +got):\n%s", diff)
			}
		})
	}
}
