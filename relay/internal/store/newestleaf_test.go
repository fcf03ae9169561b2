package store

import (
	"sync"
	"testing"

	"github.com/relaypool/relaypool/relay/internal/commitments"
)

func TestTheNewestLeafIsThatOfTheServedOnes(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	c := s.Commitments(testPool)
	check := func(what string, want commitments.Position, wantLeaf byte) {
		t.Helper()
		var together sync.WaitGroup
		for range 20 {
			together.Go(func() {
				pos, leaf, err := c.Newest(ctx)
				if err != nil || pos != want || leaf != [32]byte{wantLeaf} {
					t.Errorf("%s: the newest leaf of %+v is %x (%v), want %+v and %x", what, pos, leaf, err, want, wantLeaf)
				}
			})
		}
		together.Wait()
	}
	check("nothing was read", commitments.Position{}, 0)
	pos := commitments.Position{}
	ok(t, c.Append(ctx, pos, []commitments.IndexedCommitment{{Commitment: [32]byte{1}, Slot: 5}, {Commitment: [32]byte{2}, Slot: 5}, {Commitment: [32]byte{3}, Slot: 6}}, 7))
	pos.Leaves, pos.Slot = 3, 7
	check("no leaf is served", pos, 0)
	ok(t, c.Publish(ctx, pos, 2))
	pos.Published = 2
	check("two of three leaves are served", pos, 2)
	ok(t, c.Rewind(ctx, pos, 4))
	check("all leaves were removed", commitments.Position{Slot: 4, Generation: 1}, 0)
}
