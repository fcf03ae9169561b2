package commitments_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/relaypool/relaypool/relay/internal/commitments"
)

// recordingStore records the lowest leaf that was read, and may refuse to write checkpoints.
type recordingStore struct {
	commitments.Store
	lowest uint64
	old    bool // a relay of the release before, which knows no checkpoints
}

func (s *recordingStore) Read(ctx context.Context, generation, from uint64, limit int) ([]commitments.IndexedCommitment, error) {
	s.lowest = min(s.lowest, from)
	return s.Store.Read(ctx, generation, from, limit)
}

func (s *recordingStore) AddCheckpoint(ctx context.Context, generation uint64, c commitments.Checkpoint) error {
	if s.old {
		return nil
	}
	return s.Store.AddCheckpoint(ctx, generation, c)
}

const all = 1 << 40 // leaves

// twentyLeaves is an index of ten transactions, a slot each, that a follower has published.
func twentyLeaves(t *testing.T, s *recordingStore, h *history) {
	t.Helper()
	s.Store = newStore(t, h)
	for slot := uint64(1); slot <= 10; slot++ {
		h.block(slot, h.transact())
	}
	f := newFollower(t, h, s)
	must(t, f.Sync(t.Context(), 0))
	wantServed(t, f, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
}

func TestARestartReadsOnlyTheLeavesAfterACheckpoint(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		old        bool
		wantLowest uint64
	}{
		"checkpoints were written with the leaves":                 {wantLowest: 18},
		"the leaves were written by a relay that knows none of it": {old: true, wantLowest: 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, s := newHistory(t), &recordingStore{old: test.old}
			twentyLeaves(t, s, h)
			s.old = false
			for _, want := range []uint64{test.wantLowest, 18} {
				s.lowest = all
				restarted := newFollower(t, h, s)
				must(t, restarted.Sync(t.Context(), 0))
				if s.lowest != want || !restarted.Status().Verified {
					t.Errorf("a restarted relay read leaves from %d on, status %+v; want from %d on, verified", s.lowest, restarted.Status(), want)
				}
			}
		})
	}
}

// A wrong checkpoint makes right leaves look wrong. None of them may be withdrawn for it, and
// the chain is not read again.
func TestAWrongCheckpointIsReplaced(t *testing.T) {
	t.Parallel()
	h, s := newHistory(t), &recordingStore{}
	twentyLeaves(t, s, h)
	right, err := s.Checkpoint(t.Context(), 0, all)
	must(t, err)
	for _, leaves := range []uint64{18, 9} { // the one that a restart uses, and one that a rewind would use
		wrong, err := s.Checkpoint(t.Context(), 0, leaves)
		must(t, err)
		if wrong.Leaves != leaves {
			t.Fatalf("the newest checkpoint of at most %d leaves has %d", leaves, wrong.Leaves)
		}
		wrong.Frontier[31] ^= 1
		wrong.Frontier[63] ^= 1
		replaceCheckpoint(t, s.Store, wrong)
	}
	reads := h.reads
	restarted := newFollower(t, h, s)
	must(t, restarted.Sync(t.Context(), 0))
	wantServed(t, restarted, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	pos, err := s.Position(t.Context())
	must(t, err)
	got, err := s.Checkpoint(t.Context(), 0, all)
	must(t, err)
	if pos.Generation != 0 || h.reads != reads || got.Leaves != right.Leaves || !bytes.Equal(got.Frontier, right.Frontier) {
		t.Errorf("generation %d, %d blocks read, the newest checkpoint has %d leaves; want generation 0, none read, and the checkpoint of %d leaves as before it was spoiled",
			pos.Generation, h.reads-reads, got.Leaves, right.Leaves)
	}
}

// replaceCheckpoint writes a checkpoint in the place of the one with as many leaves.
func replaceCheckpoint(t *testing.T, s commitments.Store, c commitments.Checkpoint) {
	t.Helper()
	var keep []commitments.Checkpoint
	for most := uint64(all); ; {
		k, err := s.Checkpoint(t.Context(), 0, most)
		must(t, err)
		if k.Leaves == 0 {
			break
		}
		if k.Leaves == c.Leaves {
			k = c
		}
		keep, most = append(keep, k), k.Leaves-1
	}
	must(t, s.DropCheckpoints(t.Context()))
	for _, k := range keep {
		must(t, s.AddCheckpoint(t.Context(), 0, k))
	}
}

func TestARewindDropsTheCheckpointsAboveIt(t *testing.T) {
	t.Parallel()
	h, s := newHistory(t), &recordingStore{}
	twentyLeaves(t, s, h)
	before, err := s.Checkpoint(t.Context(), 0, all)
	must(t, err)
	pos, err := s.Position(t.Context())
	must(t, err)
	must(t, s.Rewind(t.Context(), pos, 5)) // to 10 leaves
	must(t, s.AddCheckpoint(t.Context(), 0, before))
	if old, err := s.Checkpoint(t.Context(), 0, all); err != nil || old.Leaves != 0 {
		t.Errorf("the generation before the rewind has a checkpoint of %d leaves (%v), want none", old.Leaves, err)
	}
	must(t, s.AddCheckpoint(t.Context(), 1, before)) // of leaves that are not stored
	if got, err := s.Checkpoint(t.Context(), 1, all); err != nil || got.Leaves != 9 {
		t.Errorf("the newest checkpoint after a rewind to 10 leaves has %d (%v), want 9", got.Leaves, err)
	}
	restarted := newFollower(t, h, s)
	must(t, restarted.Sync(t.Context(), 0))
	wantServed(t, restarted, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
}
