package commitments_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relaypool/relaypool/relay/internal/commitments"
	"github.com/relaypool/relaypool/relay/onchain"
)

func TestLeavesAreServedInTheOrderOfTheBlocks(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	s := newStore(t, h)
	f := newFollower(t, h, s)
	must(t, f.Sync(t.Context(), 0))
	wantServed(t, f)
	h.block(5, h.transact(), h.fail(), h.transact())
	h.block(6, h.fail())
	h.block(7, h.transact())
	h.blocks[0].UnknownVersions = 2
	must(t, f.Sync(t.Context(), 0))
	wantServed(t, f, 1, 3, 5)
	if r := f.Status(); !r.Verified || r.Published != 6 || r.Indexed != 6 || r.ChainNext != 6 || r.Lag() != 0 || r.UnknownVersions != 2 {
		t.Errorf("status is %+v, want six leaves verified and two transactions of unknown versions", r)
	}
	if h.reads != 2 {
		t.Errorf("%d blocks were read, want the two that have leaves", h.reads)
	}
	page, err := f.Store.Read(t.Context(), 0, 2, 3)
	if err != nil || len(page) != 3 || page[0].Commitment != leaf(3, 0) {
		t.Errorf("the page of 3 leaves from index 2 is %v (%v)", page, err)
	}
	if index, ok, err := find(t, f, leaf(3, 1)); err != nil || !ok || index != 3 {
		t.Errorf("leaf 3 is found at index %d: %v (%v), want index 3", index, ok, err)
	}
	if _, ok, err := find(t, f, leaf(2, 0)); err != nil || ok {
		t.Errorf("an output of a failed transaction is found: %v (%v)", ok, err)
	}

	h.block(9, h.transact())
	restarted := newFollower(t, h, s)
	must(t, restarted.Sync(t.Context(), 0))
	wantServed(t, restarted, 1, 3, 5, 6)
	if h.reads != 3 {
		t.Errorf("after a restart %d blocks were read, want only the new one", h.reads-2)
	}
	must(t, f.Sync(t.Context(), 0)) // the first follower reads the second one's writes from the database
	wantServed(t, f, 1, 3, 5, 6)
	if r := f.Status(); h.reads != 3 || !r.Verified || r.Indexed != 8 {
		t.Errorf("%d blocks were read and the status is %+v, want 3 blocks read and the other follower's leaves verified", h.reads, r)
	}
	lists := h.lists
	must(t, f.Sync(t.Context(), 0))
	if h.lists != lists {
		t.Error("the chain's history was read although nothing is new")
	}
}

func TestLongHistoryIsReadInPages(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	var want []uint64
	for slot := uint64(1); slot <= 540; slot++ {
		h.block(slot, h.transact(), h.transact())
		want = append(want, h.next-1, h.next)
	}
	f := newFollower(t, h, newStore(t, h))
	must(t, f.Sync(t.Context(), 0))
	wantServed(t, f, want...)
	if h.reads != 540 {
		t.Errorf("%d blocks were read, want each of 540 once", h.reads)
	}
}

func TestWrongOrderIsNotPublished(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	f := newFollower(t, h, newStore(t, h))
	h.block(1, h.transact())
	must(t, f.Sync(t.Context(), 0))
	a, b := h.transact(), h.transact()
	h.block(2, b, a) // the endpoint lies about the order
	for range 20 {
		if err := f.Sync(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "another root") {
			t.Errorf("syncing blocks in a wrong order returned %v, want an error about another root", err)
		}
		wantServed(t, f, 1)
		wantSince(t, f, h.tree.Root, false)
		h.advance(time.Minute)
	}
	h.set(func() { h.blocks[1].Transactions = []onchain.BlockTransaction{a, b} })
	h.advance(time.Hour)
	must(t, f.Sync(t.Context(), 0))
	wantServed(t, f, 1, 2, 3)
	wantSince(t, f, h.tree.Root, true)
	if r := f.Status(); r.Problem != "" || !r.Verified {
		t.Errorf("status is %+v after the endpoint was corrected, want it verified", r)
	}
}

func TestForks(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		fork map[uint64][]uint64
		want []uint64
		// retry is true when the first Sync cannot succeed.
		retry bool
	}{
		"the newest transaction is removed":                           {fork: map[uint64][]uint64{10: {1}, 12: {2}}, want: []uint64{1, 2}},
		"another transaction replaces the newest":                     {fork: map[uint64][]uint64{10: {1}, 12: {2}, 15: {4}}, want: []uint64{1, 2, 4}},
		"another transaction is inserted before the newest":           {fork: map[uint64][]uint64{10: {1}, 12: {2}, 13: {4}, 14: {3}}, want: []uint64{1, 2, 4, 3}},
		"two transactions are in one slot, in another order":          {fork: map[uint64][]uint64{10: {1}, 12: {3, 2}}, want: []uint64{1, 3, 2}},
		"all transactions are removed":                                {fork: map[uint64][]uint64{}, want: nil},
		"all transactions are replaced":                               {fork: map[uint64][]uint64{11: {4}, 12: {5}, 13: {6}}, want: []uint64{4, 5, 6}},
		"the same transactions are in other slots":                    {fork: map[uint64][]uint64{9: {1}, 11: {2}, 13: {3}}, want: []uint64{1, 2, 3}},
		"the common ones are in earlier slots, and a new one follows": {fork: map[uint64][]uint64{9: {1}, 10: {2}, 11: {4}}, want: []uint64{1, 2, 4}, retry: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHistory(t)
			f := newFollower(t, h, newStore(t, h))
			for slot := uint64(10); slot <= 14; slot += 2 {
				h.block(slot, h.transact())
			}
			must(t, f.Sync(t.Context(), 0))
			wantServed(t, f, 1, 2, 3)
			h.fork(test.fork)
			err := f.Sync(t.Context(), 0)
			if test.retry != (err != nil) {
				t.Errorf("the first Sync after the fork returned %v, want an error: %v", err, test.retry)
			}
			if test.retry {
				wantServed(t, f, 1, 2) // confirmed leaves stay
				h.advance(time.Minute)
				must(t, f.Sync(t.Context(), 0))
			}
			wantServed(t, f, test.want...)
			if r := f.Status(); !r.Verified || r.Problem != "" {
				t.Errorf("status is %+v, want it verified without a problem", r)
			}
		})
	}
}

func TestForkLongerThanTheRootHistoryWithdrawsLeaves(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	f := newFollower(t, h, newStore(t, h))
	fork := map[uint64][]uint64{}
	var want []uint64
	for slot := uint64(1); slot <= 80; slot++ {
		h.block(slot, h.transact())
		fork[slot] = []uint64{1000 + slot}
		want = append(want, 1000+slot)
	}
	must(t, f.Sync(t.Context(), 0))
	abandoned := h.tree.Root
	wantSince(t, f, abandoned, true)
	h.fork(fork)
	h.set(func() { h.first = 81 }) // and the endpoint's history is too short
	if err := f.Sync(t.Context(), 0); err == nil {
		t.Error("Sync returned no error for leaves that the chain disproves")
	}
	wantServed(t, f)
	wantSince(t, f, abandoned, false)
	if _, ok, err := find(t, f, leaf(7, 0)); err != nil || ok {
		t.Errorf("a leaf of the abandoned fork is found: %v (%v)", ok, err)
	}
	h.set(func() { h.first = 0 })
	h.advance(time.Hour)
	must(t, f.Sync(t.Context(), 0))
	wantServed(t, f, want...)
}

func TestShortHistoryIsReportedAndPublishesNothing(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		transactions, first, pruned uint64
	}{
		"the first of three transactions is missing":       {transactions: 3, first: 2},
		"all three are missing":                            {transactions: 3, first: 10},
		"more are missing than the root history has roots": {transactions: 200, first: 120},
		"all of 200 are missing":                           {transactions: 200, first: 300},
		"the blocks of listed transactions are pruned":     {transactions: 200, pruned: 120},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHistory(t)
			var want []uint64
			for slot := uint64(1); slot <= test.transactions; slot++ {
				h.block(slot, h.transact())
				want = append(want, slot)
			}
			h.first, h.pruned = test.first, test.pruned
			f := newFollower(t, h, newStore(t, h))
			var err error
			for range 40 {
				err = f.Sync(t.Context(), 0)
				wantServed(t, f)
				if _, ok, err := find(t, f, leaf(test.transactions, 0)); err != nil || ok {
					t.Fatalf("a leaf is found although the first leaves are missing: %v (%v)", ok, err)
				}
				h.advance(500 * time.Millisecond)
			}
			if err == nil || !strings.Contains(err.Error(), "full history") || !strings.Contains(f.Status().Problem, "full history") {
				t.Errorf("Sync with a short history returned %v, status %+v; want an error about full history", err, f.Status())
			}
			h.set(func() { h.first, h.pruned = 0, 0 })
			for range 8 {
				h.advance(time.Hour)
				err = f.Sync(t.Context(), 0)
			}
			must(t, err)
			wantServed(t, f, want...)
		})
	}
}

func TestRetriesOfAShortHistoryAreLimited(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	for slot := uint64(1); slot <= 200; slot++ {
		h.block(slot, h.transact())
	}
	h.first = 101
	f := newFollower(t, h, newStore(t, h))
	for range 2 * 60 * 10 {
		if err := f.Sync(t.Context(), 0); err == nil {
			t.Fatal("Sync with a short history returned no error")
		}
		h.advance(500 * time.Millisecond)
	}
	if h.reads > 12*100 {
		t.Errorf("%d blocks were read in ten minutes at an endpoint that has 100, want at most 1200", h.reads)
	}
}

// When the relay was down for longer than its endpoint's history reaches back, stored leaves may
// exist nowhere else, and must not be removed.
func TestConfirmedLeavesAreKeptBeyondTheEndpointsHistory(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	f := newFollower(t, h, newStore(t, h))
	for slot := uint64(1); slot <= 3; slot++ {
		h.block(slot, h.transact())
	}
	must(t, f.Sync(t.Context(), 0))
	h.block(1000, h.transact())
	h.block(2000, h.transact())
	h.set(func() { h.first = 1500 })
	for range 50 {
		if err := f.Sync(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "full history") {
			t.Errorf("Sync with a gap in the history returned %v, want an error about full history", err)
		}
		wantServed(t, f, 1, 2, 3)
		h.advance(10 * time.Minute)
	}
	h.set(func() { h.first = 0 })
	must(t, f.Sync(t.Context(), 0))
	wantServed(t, f, 1, 2, 3, 4, 5)
}

func TestTransactionListedLateIsRead(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	f := newFollower(t, h, newStore(t, h))
	h.block(1, h.transact())
	must(t, f.Sync(t.Context(), 0))
	h.block(2, h.transact())
	h.block(3, h.transact())
	h.unlisted[2] = true
	if err := f.Sync(t.Context(), 0); err == nil {
		t.Error("Sync returned no error although a transaction is not listed")
	}
	wantServed(t, f, 1)
	h.set(func() { delete(h.unlisted, 2) })
	h.advance(time.Minute)
	must(t, f.Sync(t.Context(), 0))
	wantServed(t, f, 1, 2, 3)
}

func TestMissingNewestLeavesAreReportedAfterAWhile(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	f := newFollower(t, h, newStore(t, h))
	h.block(1, h.transact())
	h.block(2, h.transact())
	h.unlisted[2] = true
	must(t, f.Sync(t.Context(), 0)) // endpoints list a transaction moments after they show its effect
	wantServed(t, f, 1)
	h.advance(5 * time.Second)
	must(t, f.Sync(t.Context(), 0))
	h.advance(6 * time.Second)
	if err := f.Sync(t.Context(), 0); err == nil || !strings.Contains(f.Status().Problem, "2 of 4 leaves") {
		t.Errorf("Sync returned %v, status %+v; want an error about 2 of 4 leaves", err, f.Status())
	}
	wantServed(t, f, 1)
	h.set(func() { delete(h.unlisted, 2) })
	h.advance(time.Minute)
	must(t, f.Sync(t.Context(), 0))
	wantServed(t, f, 1, 2)
}

func TestAccountThatFailsItsSelfCheckConfirmsNothing(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	f := newFollower(t, h, newStore(t, h))
	h.block(1, h.transact())
	h.unchecked = true
	if err := f.Sync(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "self-check") {
		t.Errorf("Sync with an account that fails its self-check returned %v, want an error", err)
	}
	wantServed(t, f)
	if r := f.Status(); r.Verified || r.Indexed != 2 {
		t.Errorf("status is %+v, want two leaves that are not verified", r)
	}
	h.set(func() { h.unchecked = false })
	must(t, f.Sync(t.Context(), 0))
	wantServed(t, f, 1)
	if h.reads != 1 {
		t.Errorf("%d blocks were read, want one", h.reads)
	}
}

func TestTwoPodsShareAnIndex(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	s := newStore(t, h)
	a, b := newFollower(t, h, s), newFollower(t, h, s)
	var want []uint64
	for slot := uint64(1); slot <= 20; slot++ {
		h.block(slot, h.transact())
		want = append(want, h.next)
		var wg sync.WaitGroup
		for _, f := range []*commitments.Follower{a, b, a, b} {
			wg.Go(func() {
				if err := f.Sync(context.Background(), 0); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	must(t, a.Sync(t.Context(), 0))
	wantServed(t, a, want...)
	must(t, b.Sync(t.Context(), 0))
	wantServed(t, b, want...)
	if most := len(want) + 2; h.reads > most { // on a busy machine a pod may have waited for half a second
		t.Errorf("%d blocks were read, want at most %d: each once for both pods", h.reads, most)
	}
}

// The store has as many leaves as this pod knows, but different ones.
func TestWrongLeavesOfAnotherPodAreReplaced(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	s := newStore(t, h)
	f := newFollower(t, h, s)
	h.block(1, h.transact())
	h.block(2, h.transact(), h.transact())
	must(t, f.Sync(t.Context(), 0))

	pos, err := s.Position(t.Context())
	must(t, err)
	must(t, s.Rewind(t.Context(), pos, 1))
	rewound, err := s.Position(t.Context())
	must(t, err)
	if rewound != (commitments.Position{Leaves: 2, Published: 2, Slot: 1, Generation: pos.Generation + 1}) {
		t.Fatalf("the position after a rewind is %+v, want 2 published leaves up to slot 1 in the next generation", rewound)
	}
	must(t, s.Append(t.Context(), rewound, []commitments.IndexedCommitment{
		{Commitment: leaf(3, 0), Slot: 2}, {Commitment: leaf(3, 1), Slot: 2},
		{Commitment: leaf(2, 0), Slot: 2}, {Commitment: leaf(2, 1), Slot: 2},
	}, 2))
	wantServed(t, f, 1)
	must(t, f.Sync(t.Context(), 0))
	wantServed(t, f, 1, 2, 3)

	for name, err := range map[string]error{
		"append":  s.Append(t.Context(), rewound, nil, 9),
		"publish": s.Publish(t.Context(), rewound, 2),
		"rewind":  s.Rewind(t.Context(), rewound, 0),
	} {
		if !errors.Is(err, commitments.ErrMoved) {
			t.Errorf("%s from an old position returned %v, want ErrMoved", name, err)
		}
	}
	if _, err := s.Read(t.Context(), pos.Generation, 0, 10); !errors.Is(err, commitments.ErrMoved) {
		t.Errorf("reading the leaves of an old generation returned %v, want ErrMoved", err)
	}
}

// emptyStore is an empty index.
type emptyStore struct{ commitments.Store }

func (emptyStore) Position(context.Context) (commitments.Position, error) {
	return commitments.Position{}, nil
}

func TestConcurrentSyncsShareAPass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHistory(t)
		h.gate = make(chan struct{})
		f := newFollower(t, h, emptyStore{})
		ended := make(chan error, 21)
		call := func() { ended <- f.Sync(context.Background(), 0) }
		go call()
		synctest.Wait() // the first pass reads the tree
		for range 20 {
			go call()
		}
		cancelled, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { result <- f.Sync(cancelled, 0) }()
		synctest.Wait() // all others wait for the pass to end
		cancel()
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled caller gets %v, want its context's error", err)
		}
		<-h.gate
		<-h.gate // for the pass that started after the other twenty calls
		for range cap(ended) {
			must(t, <-ended)
		}
		if h.treeReads != 2 {
			t.Errorf("the tree was read %d times, want once for the first call and once for all others", h.treeReads)
		}

		go func() { result <- f.Sync(cancelled, 0) }()
		if err := <-result; !errors.Is(err, context.Canceled) || f.Status().Problem != "" {
			t.Errorf("a cancelled caller gets %v, and the status is %+v; want its context's error and no problem", err, f.Status())
		}
	})
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

func TestRunFollowsTheChainUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	f, err := commitments.New(commitments.Options{
		Store: newStore(t, h), Chain: h, Tree: h, Pool: h.pool, Log: discard(), Now: h.now, Interval: time.Millisecond,
		Finalized: h.finalizedSlot, Subscribed: func() bool { return false },
	})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { f.Run(ctx); close(done) }()
	h.block(1, h.transact())
	eventually(t, "two leaves are published", func() bool { return f.Status().Published == 2 })
	cancel()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("Run has not returned 30 s after its context ended")
	}
	if _, err := commitments.New(commitments.Options{}); err == nil {
		t.Error("New without options returned no error")
	}
}

// find looks one commitment up.
func find(t *testing.T, f *commitments.Follower, commitment [32]byte) (index uint64, ok bool, err error) {
	t.Helper()
	found, err := f.Find(t.Context(), [][32]byte{commitment})
	index, ok = found[commitment]
	return index, ok, err
}

// Clients wait for the outcome of what landed, and a read of the tree waits for its turn.
func TestAPassReadsTheTreeOnce(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	f := newFollower(t, h, newStore(t, h))
	for slot := uint64(1); slot <= 3; slot++ {
		h.block(slot, h.transact())
		must(t, f.Sync(t.Context(), 0))
		wantServed(t, f, []uint64{1, 2, 3}[:slot]...)
		if h.treeReads != int(slot) {
			t.Errorf("the tree was read %d times in %d passes, want once in each", h.treeReads, slot)
		}
	}
}
