package commitments

import (
	"errors"
	"testing"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	ours, other := [32]byte{1}, [32]byte{2}
	at := func(next, slot uint64, checked bool, roots ...[32]byte) onchain.Snapshot {
		ring := make([][32]byte, 100)
		copy(ring, roots)
		return onchain.Snapshot{Tree: &shieldpool.TreeAccount{NextIndex: next, History: ring}, Slot: slot, Checked: checked}
	}
	tests := map[string]struct {
		leaves uint64
		known  uint64
		snap   onchain.Snapshot
		want   verdict
	}{
		"the root is the newest":                                        {leaves: 8, known: 8, snap: at(8, 50, true, ours), want: confirmed},
		"the root is one of those before":                               {leaves: 6, known: 6, snap: at(8, 50, true, other, ours), want: confirmed},
		"the account contradicts itself":                                {leaves: 8, known: 8, snap: at(8, 50, false, ours), want: unchecked},
		"the account is of a slot before the blocks":                    {leaves: 8, known: 6, snap: at(6, 49, true, other), want: notReached},
		"so many came since that the root history is full of others":    {leaves: 8, known: 8, snap: at(108, 60, true, other), want: notReached},
		"not so many came, and the root should be there":                {leaves: 8, known: 8, snap: at(107, 60, true, other), want: wrong},
		"as many are missing, and were there before":                    {leaves: 8, known: 108, snap: at(108, 60, true, other), want: wrong},
		"the count is right and the root is not":                        {leaves: 8, known: 8, snap: at(8, 50, true, other), want: wrong},
		"there are more than the chain has in a slot that we have read": {leaves: 10, known: 8, snap: at(8, 50, true, other), want: wrong},
		"nothing is read of what is there":                              {leaves: 0, known: 200, snap: at(200, 60, true, other), want: wrong},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := classify(Position{Leaves: test.leaves, Slot: 50}, ours, test.known, test.snap); got != test.want {
				t.Errorf("verdict is %d, want %d", got, test.want)
			}
		})
	}
}

func TestRewindsGoEverDeeper(t *testing.T) {
	t.Parallel()
	const newest = 400_000_000 // slots of a real cluster
	var before uint64 = newest
	for strike := 1; strike <= 8; strike++ {
		slot := rewindSlot(newest, strike)
		if slot > before {
			t.Errorf("strike %d goes back to slot %d, the one before to %d", strike, slot, before)
		}
		before = slot
	}
	if first := rewindSlot(newest, 1); first != newest-firstDepth {
		t.Errorf("the first rewind goes back %d slots, want %d", newest-first, firstDepth)
	}
	if before != 0 {
		t.Errorf("the eighth goes back to slot %d, want the beginning", before)
	}
	if got := rewindSlot(100, 1); got != 0 {
		t.Errorf("from slot 100 it goes to %d, want 0", got)
	}
}

func TestAnEndThatDoesNotComeIsWaitedForFromWhereItStands(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f := &Follower{Options: Options{Now: func() time.Time { return now }}}
	behind := func(leaves uint64) comparison {
		return comparison{pos: Position{Leaves: leaves}, known: 9, verdict: confirmed}
	}
	for _, step := range []struct {
		what  string
		look  comparison
		after time.Duration
		want  bool
	}{
		{"it has only just stopped", behind(5), 0, false},
		{"it stands as long as is borne with", behind(5), stuckAfter, false},
		{"it stands for longer", behind(5), 1, true},
		{"it went on", behind(6), 1, false},
		{"it stands there as long", behind(6), stuckAfter, false},
		{"it stands there for longer", behind(6), 1, true},
		{"it has come to its end", comparison{pos: Position{Leaves: 9}, known: 9, verdict: confirmed}, 1, false},
		{"it is seen where it stood before, after its end", behind(6), 1, false},
		{"and stands there for longer again", behind(6), stuckAfter + 1, true},
	} {
		now = now.Add(step.after)
		if got := f.isStuck(step.look); got != step.want {
			t.Errorf("%s: stuck is %t, want %t", step.what, got, step.want)
		}
	}
	f.rewinds, f.stuckSince = 1, time.Time{}
	if !f.isStuck(behind(5)) {
		t.Error("what a rewind did not help is waited for once more")
	}
}

// An endpoint that has its history again is noticed within that time.
func TestTheRestBetweenRewindsIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f := &Follower{Options: Options{Now: func() time.Time { return now }}}
	for n := range 40 {
		if err := f.scheduleRetry(errShort); !errors.Is(err, errShort) {
			t.Fatal(err)
		}
		want := maxRetryDelay
		if n < 10 { // 512 seconds is the last wait below the bound
			want = firstRetryDelay << n
		}
		if got := f.retryAt.Sub(now); got != want {
			t.Errorf("rest %d lasts %s, want %s", n+1, got, want)
		}
	}
}
