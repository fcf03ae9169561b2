package commitments

import (
	"errors"
	"testing"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	root, other := [32]byte{1}, [32]byte{2}
	// A snapshot has those roots, by the number of leaves, and another one for each number that is not given.
	snapshot := func(next, slot uint64, checked bool, roots map[uint64][32]byte) onchain.Snapshot {
		tree := &shieldpool.TreeAccount{NextIndex: next, History: make([][32]byte, 100)}
		tree = tree.WithHistory(func(leaves uint64) [32]byte {
			if r, ok := roots[leaves]; ok {
				return r
			}
			return other
		})
		return onchain.Snapshot{Tree: tree, Slot: slot, Checked: checked}
	}
	provisional := snapshot(8, 50, true, map[uint64][32]byte{8: root})
	provisional.Provisional = true
	tests := map[string]struct {
		leaves       uint64
		leavesBefore uint64
		snap         onchain.Snapshot
		want         verdict
	}{
		"the newest root":                                               {leaves: 8, leavesBefore: 8, snap: snapshot(8, 50, true, map[uint64][32]byte{8: root}), want: confirmed},
		"an earlier root":                                               {leaves: 6, leavesBefore: 6, snap: snapshot(8, 50, true, map[uint64][32]byte{6: root}), want: confirmed},
		"the account fails its self-check":                              {leaves: 8, leavesBefore: 8, snap: snapshot(8, 50, false, map[uint64][32]byte{8: root}), want: unchecked},
		"the account is older than the blocks":                          {leaves: 8, leavesBefore: 6, snap: snapshot(6, 49, true, nil), want: inconclusive},
		"as many leaves came since as the root history has roots":       {leaves: 8, leavesBefore: 8, snap: snapshot(108, 60, true, nil), want: inconclusive},
		"fewer leaves came since, so the root should be in the history": {leaves: 8, leavesBefore: 8, snap: snapshot(107, 60, true, nil), want: wrong},
		"as many leaves are missing, and were on the chain before":      {leaves: 8, leavesBefore: 108, snap: snapshot(108, 60, true, nil), want: wrong},
		"the number of leaves is right and the root is wrong":           {leaves: 8, leavesBefore: 8, snap: snapshot(8, 50, true, nil), want: wrong},
		"more leaves than the chain has":                                {leaves: 10, leavesBefore: 8, snap: snapshot(8, 50, true, nil), want: wrong},
		"the root is in the history for another number of leaves":       {leaves: 8, leavesBefore: 8, snap: snapshot(9, 50, true, map[uint64][32]byte{7: root}), want: wrong},
		"two endpoints do not show the same root of so many leaves":     {leaves: 6, leavesBefore: 6, snap: snapshot(8, 50, true, map[uint64][32]byte{6: {}}), want: inconclusive},
		"they do not, and leaves are missing":                           {leaves: 6, leavesBefore: 8, snap: snapshot(8, 50, true, map[uint64][32]byte{6: {}}), want: inconclusive},
		"only one endpoint shows the account":                           {leaves: 8, leavesBefore: 8, snap: provisional, want: inconclusive},
		"no leaf of many is read":                                       {leaves: 0, leavesBefore: 200, snap: snapshot(200, 60, true, nil), want: wrong},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := classify(Position{Leaves: test.leaves, Slot: 50}, root, test.leavesBefore, test.snap); got != test.want {
				t.Errorf("verdict is %d, want %d", got, test.want)
			}
		})
	}
}

// Leaves of the empty value keep the root. A client that has fewer of them gets some twice, and lacks none.
func TestARootOfTwoNumbersOfLeavesCountsForTheLower(t *testing.T) {
	t.Parallel()
	same := [32]byte{1}
	tree := (&shieldpool.TreeAccount{NextIndex: 5, History: make([][32]byte, 100)}).WithHistory(func(leaves uint64) [32]byte {
		if leaves >= 2 && leaves <= 4 {
			return same
		}
		return [32]byte{9, byte(leaves)}
	})
	for leaves := range uint64(6) {
		n := newest{next: 5, leaves: make([]string, leaves)}
		n.addRoots(tree)
		if want := max(2, 5-leaves); n.counts[same] != want && leaves > 0 {
			t.Errorf("with the last %d leaves in memory the root is of %d leaves, want %d", leaves, n.counts[same], want)
		}
		if uint64(len(n.counts)) > leaves+1 {
			t.Errorf("with the last %d leaves in memory, %d roots are known", leaves, len(n.counts))
		}
	}
	(&newest{}).addRoots(tree) // nothing is in memory
}

func TestEachRewindGoesFurtherBack(t *testing.T) {
	t.Parallel()
	const newest = 400_000_000 // slots of a real cluster
	var before uint64 = newest
	for rewind := 1; rewind <= 8; rewind++ {
		slot := rewindSlot(newest, rewind)
		if slot > before {
			t.Errorf("rewind %d goes back to slot %d, want at most %d as the one before", rewind, slot, before)
		}
		before = slot
	}
	if first := rewindSlot(newest, 1); first != newest-firstDepth {
		t.Errorf("the first rewind goes back %d slots, want %d", newest-first, firstDepth)
	}
	if before != 0 {
		t.Errorf("the eighth rewind goes back to slot %d, want 0", before)
	}
	if got := rewindSlot(100, 1); got != 0 {
		t.Errorf("the first rewind from slot 100 goes back to slot %d, want 0", got)
	}
}

func TestIsStuck(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f := &Follower{Options: Options{Now: func() time.Time { return now }}}
	incomplete := func(leaves uint64) comparison {
		return comparison{pos: Position{Leaves: leaves}, leavesBefore: 9, verdict: confirmed}
	}
	for _, step := range []struct {
		what       string
		comparison comparison
		after      time.Duration
		want       bool
	}{
		{"just incomplete", incomplete(5), 0, false},
		{"incomplete for the longest accepted time", incomplete(5), stuckAfter, false},
		{"incomplete for longer", incomplete(5), 1, true},
		{"one leaf more", incomplete(6), 1, false},
		{"incomplete there for the longest accepted time", incomplete(6), stuckAfter, false},
		{"incomplete there for longer", incomplete(6), 1, true},
		{"complete", comparison{pos: Position{Leaves: 9}, leavesBefore: 9, verdict: confirmed}, 1, false},
		{"incomplete again", incomplete(6), 1, false},
		{"incomplete again for longer", incomplete(6), stuckAfter + 1, true},
	} {
		now = now.Add(step.after)
		if got := f.isStuck(step.comparison); got != step.want {
			t.Errorf("%s: stuck is %t, want %t", step.what, got, step.want)
		}
	}
	f.rewinds, f.stuckSince = 1, time.Time{}
	if !f.isStuck(incomplete(5)) {
		t.Error("isStuck is false after a rewind that did not help, want true")
	}
}

// An endpoint that has its history again is used after at most maxRetryDelay.
func TestRetryDelayIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f := &Follower{Options: Options{Now: func() time.Time { return now }}}
	for n := range 40 {
		if err := f.scheduleRetry(errShort); !errors.Is(err, errShort) {
			t.Fatal(err)
		}
		want := maxRetryDelay
		if n < 10 { // the tenth wait, 512 s, is the last one below the maximum
			want = firstRetryDelay << n
		}
		if got := f.retryAt.Sub(now); got != want {
			t.Errorf("wait %d lasts %s, want %s", n+1, got, want)
		}
	}
}
