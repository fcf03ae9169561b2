package commitments_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/commitments"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// ProcessedTree implements commitments.Tree: the confirmed tree, unless a test sets another one.
func (h *history) ProcessedTree(context.Context) (onchain.Snapshot, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	tree := h.processed
	if tree == nil {
		tree = h.tree
	}
	h.elapsed.Add(1) // each answer has a time of its own
	return onchain.Snapshot{Tree: copyOf(tree), Slot: h.treeSlot, At: h.now(), Checked: !h.unchecked}, nil
}

func copyOf(t *shieldpool.TreeAccount) *shieldpool.TreeAccount {
	c := *t
	c.History = slices.Clone(t.History)
	return &c
}

// process makes the tree that the endpoint has processed: the confirmed one and the leaves of those
// transactions.
func (h *history) process(transactions ...uint64) {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.processed = copyOf(h.tree)
	for _, n := range transactions {
		for k := range uint64(2) {
			must(h.t, h.processed.Append(leaf(n, k)))
		}
	}
}

// sentStore is a store in which those transactions are sent.
type sentStore struct {
	commitments.Store
	mu   sync.Mutex
	sent []uint64
	more [][][32]byte
}

func (s *sentStore) set(sent ...uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = sent
}

// equal makes the next answers have transaction n too, whose first leaf is that of another one.
func (s *sentStore) equal(n, other uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.more = [][][32]byte{{leaf(other, 0), leaf(n, 1)}}
}

func (s *sentStore) SentLeaves(context.Context) (out [][][32]byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.sent {
		out = append(out, [][32]byte{leaf(n, 0), leaf(n, 1)})
	}
	return append(out, s.more...), nil
}

// wantProcessed checks that Processed has the leaves of those transactions after the published ones, and
// the root of all.
func wantProcessed(t *testing.T, f *commitments.Follower, transactions ...uint64) {
	t.Helper()
	got, err := f.Processed(t.Context())
	must(t, err)
	all := served(t, f)
	want := commitments.Processed{FromIndex: uint64(len(all)), Leaves: [][32]byte{}}
	for _, n := range transactions {
		want.Leaves = append(want.Leaves, leaf(n, 0), leaf(n, 1))
	}
	all = append(all, want.Leaves...)
	want.Root = onchain.Root{Root: rootOf(t, all), Tree: f.Pool.MerkleTree, NextIndex: uint64(len(all)), Slot: 1 << 40}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("processed (-want +got):\n%s", diff)
	}
	if len(transactions) > 0 && !isProcessed(t, f, got.Root.Root) {
		t.Error("the root that clients get is not known as processed")
	}
}

// isProcessed looks for a moment.
func isProcessed(t *testing.T, f *commitments.Follower, root [32]byte) bool {
	t.Helper()
	soon, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	return f.IsProcessed(soon, root)
}

func wantNoProcessedRoot(t *testing.T, f *commitments.Follower) {
	t.Helper()
	_, err := f.Processed(t.Context())
	if r, ok := refusal.As(err); !ok || r.Code != refusal.ChainUnavailable || r.RetryAfter < time.Second {
		t.Errorf("the error is %v, want chain_unavailable with a time to come again", err)
	}
}

// newProcessing returns a follower that has published some transactions.
func newProcessing(t *testing.T) (*history, *sentStore, *commitments.Follower) {
	t.Helper()
	h := newHistory(t)
	s := &sentStore{Store: newStore(t, h)}
	for slot := range uint64(5) {
		h.block(slot+1, h.transact())
	}
	f := newFollower(t, h, s)
	must(t, f.Sync(t.Context(), 0))
	return h, s, f
}

func TestProcessedHasTheFleetsLeavesInTheChainsOrder(t *testing.T) {
	t.Parallel()
	h, s, f := newProcessing(t)
	s.set(104, 101, 103, 102, 105)
	wantProcessed(t, f)
	h.process(101, 102, 103)
	wantProcessed(t, f, 101, 102, 103)
	wantProcessed(t, f, 101, 102, 103)
	h.process(101, 102, 103, 105, 104)
	wantProcessed(t, f, 101, 102, 103, 105, 104)

	t.Log("another fork")
	h.process(101, 104)
	wantProcessed(t, f, 101, 104)
	h.process(101, 103, 104)
	wantProcessed(t, f, 101, 103, 104)
	h.process()
	wantProcessed(t, f)

	t.Log("an endpoint that is a slot behind")
	h.process(101, 103)
	wantProcessed(t, f, 101, 103)
	tip := h.processed.Root
	h.set(func() { h.treeSlot-- })
	h.process(101)
	wantProcessed(t, f, 101, 103)
	h.set(func() { h.treeSlot++ })
	wantProcessed(t, f, 101)
	if isProcessed(t, f, tip) {
		t.Error("a root of a dead fork counts as processed")
	}

	t.Log("submissions with an equal leaf")
	s.equal(107, 101)
	h.mu.Lock()
	must(t, h.processed.Append(leaf(101, 0)))
	must(t, h.processed.Append(leaf(107, 1)))
	h.mu.Unlock()
	got, err := f.Processed(t.Context())
	must(t, err)
	if want := [][32]byte{leaf(101, 0), leaf(101, 1), leaf(101, 0), leaf(107, 1)}; !cmp.Equal(want, got.Leaves) {
		t.Errorf("the leaves are %x, want %x", got.Leaves, want)
	}

	t.Log("a deposit between submissions")
	h.process(101, 900, 102)
	wantProcessed(t, f, 101)
	s.set(101, 102, 900)
	wantProcessed(t, f, 101, 900, 102)

	t.Log("an endpoint that is behind, and one far ahead")
	confirmed := copyOf(h.tree)
	h.block(6, h.transact())
	must(t, f.Sync(t.Context(), 0))
	h.set(func() { h.processed = confirmed })
	wantNoProcessedRoot(t, f)
	ahead := make([]uint64, 60)
	for i := range ahead {
		ahead[i] = 200 + uint64(i)
	}
	s.set(ahead...)
	h.process(ahead...)
	wantNoProcessedRoot(t, f)
	if isProcessed(t, f, h.processed.Root) {
		t.Error("a root of unknown leaves counts as processed")
	}
}

// What was processed is then confirmed, by this process or by another.
func TestProcessedContinuesWhatIsPublished(t *testing.T) {
	t.Parallel()
	h, s, f := newProcessing(t)
	sent := []uint64{9, 8, 7, 6}
	s.set(sent...)
	h.process(6, 7, 8)
	wantProcessed(t, f, 6, 7, 8)
	h.block(6, h.transact())
	h.process(7, 8)
	wantProcessed(t, f, 6, 7, 8) // the confirmed leaf is not published yet
	must(t, f.Sync(t.Context(), 0))
	wantProcessed(t, f, 7, 8)
	s.set()
	h.process(7, 8, 9)
	wantProcessed(t, f, 7, 8) // 7 and 8 are known, although their submissions have ended
	s.set(sent...)
	wantProcessed(t, f, 7, 8, 9)

	t.Log("a process that has not published what another has completed")
	other := newFollower(t, h, s)
	must(t, other.Sync(t.Context(), 0))
	h.block(7, h.transact())
	h.process(8)
	must(t, f.Sync(t.Context(), 0))
	s.set(8)
	got, err := other.Processed(t.Context())
	must(t, err)
	if want := [][32]byte{leaf(7, 0), leaf(7, 1), leaf(8, 0), leaf(8, 1)}; !cmp.Equal(want, got.Leaves) || got.FromIndex != 12 {
		t.Errorf("from index %d on the leaves are %x, want %x from 12 on", got.FromIndex, got.Leaves, want)
	}
	h.advance(time.Minute)
	if isProcessed(t, other, got.Root.Root) {
		t.Error("a root is processed for a minute, without an end")
	}
}

func TestProcessedServesManyAtOnce(t *testing.T) {
	t.Parallel()
	h, s, f := newProcessing(t)
	order := []uint64{}
	var readers sync.WaitGroup
	for n := range uint64(20) {
		order = append(order, 100+n)
		s.set(order...)
		h.process(order...)
		for range 4 {
			readers.Go(func() {
				p, err := f.Processed(t.Context())
				if err != nil || p.NextIndex != p.FromIndex+uint64(len(p.Leaves)) {
					t.Errorf("%d leaves from %d are %d: %v", len(p.Leaves), p.FromIndex, p.NextIndex, err)
				}
				for i, l := range p.Leaves {
					if l != leaf(100+uint64(i)/2, uint64(i)%2) {
						t.Errorf("leaf %d is %x", i, l)
					}
				}
			})
		}
		if n%5 == 0 {
			readers.Wait()
			wantProcessed(t, f, order...)
		}
	}
	readers.Wait()
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := f.Processed(ended); err != nil {
		if r, ok := refusal.As(err); !ok || r.Code != refusal.ChainUnavailable {
			t.Errorf("a caller who has gone gets %v, want a refusal", err)
		}
	}
}

// Each call does only so much, and the next one goes on.
func TestProcessedComputesAFewRootsAtATime(t *testing.T) {
	t.Parallel()
	h, s, f := newProcessing(t)
	order := make([]uint64, 40)
	for i := range order {
		order[i] = 100 + uint64(i)
	}
	r := rand.New(rand.NewPCG(1, 2))
	r.Shuffle(len(order), func(i, k int) { order[i], order[k] = order[k], order[i] })
	h.process(order...)
	slices.Sort(order)
	s.set(append([]uint64{900, 901, 902}, order...)...)
	calls := 0
	for known := uint64(0); known < 80; calls++ {
		p, err := f.Processed(t.Context())
		must(t, err)
		if p.NextIndex-p.FromIndex < known || calls > 40 {
			t.Fatalf("call %d has %d leaves after %d: want more of them with each", calls, p.NextIndex-p.FromIndex, known)
		}
		known = p.NextIndex - p.FromIndex
		if got, ok := h.processed.RootAt(p.NextIndex); !ok || got != p.Root.Root {
			t.Fatalf("call %d has a root that the chain does not have after %d leaves", calls, p.NextIndex)
		}
	}
	if calls < 2 {
		t.Errorf("one call computed the roots of 40 submissions in a random order")
	}
	_, err := f.Processed(t.Context())
	must(t, err)
}

func TestProcessedNeedsAConfirmedTree(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	f := newFollower(t, h, newStore(t, h))
	wantNoProcessedRoot(t, f)
	must(t, f.Sync(t.Context(), 0))
	wantProcessed(t, f) // the empty tree
	h.set(func() { h.unchecked = true })
	wantNoProcessedRoot(t, f)
}
