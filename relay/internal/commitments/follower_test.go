package commitments_test

import (
	"context"
	"encoding/binary"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/commitments"
	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/internal/pgtest"
	"github.com/relaypool/relaypool/relay/internal/store"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// history is a chain's blocks and the tree that they make. What it answers has
// an endpoint's shape: signatures newest first, those of one slot in any order.
type history struct {
	pool *shieldpool.Pool

	mu     sync.Mutex
	blocks []*ledger.Block
	tree   *shieldpool.TreeAccount
	next   uint64
	// first is the first slot that the endpoint still has.
	first uint64
	reads int
}

func newHistory(t *testing.T) *history {
	t.Helper()
	p := shieldpool.ShieldPoolV1()
	pool, err := p.Pool(p.Mints[0])
	if err != nil {
		t.Fatal(err)
	}
	return &history{pool: pool, tree: p.NewTree(solana.PublicKey{})}
}

// transact is a transaction that appends two leaves, and whether it failed.
func (h *history) transact(t *testing.T, failed bool) ledger.BlockTransaction {
	t.Helper()
	h.next++
	in := &shieldpool.PublicInputs{}
	binary.BigEndian.PutUint64(in.Commitments[0][24:], 2*h.next)
	binary.BigEndian.PutUint64(in.Commitments[1][24:], 2*h.next+1)
	data, err := h.pool.Profile.Data(&shieldpool.Call{Proof: make([]byte, shieldpool.ProofLength), Inputs: in})
	if err != nil {
		t.Fatal(err)
	}
	tx := ledger.BlockTransaction{Failed: failed, Instructions: []ledger.Instruction{
		{ProgramID: solana.SystemProgramID, Data: data, Accounts: []solana.PublicKey{h.pool.MerkleTree}},
		{ProgramID: h.pool.Profile.ProgramID, Data: data, Accounts: []solana.PublicKey{h.pool.Address, h.pool.MerkleTree}},
	}}
	binary.BigEndian.PutUint64(tx.Signature[:], h.next)
	if !failed {
		for _, c := range in.Commitments {
			if err := h.tree.Append(c); err != nil {
				t.Fatal(err)
			}
		}
	}
	return tx
}

func (h *history) block(slot uint64, txs ...ledger.BlockTransaction) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.blocks = append(h.blocks, &ledger.Block{Slot: slot, Transactions: txs})
}

func (h *history) SignaturesFor(_ context.Context, _ solana.PublicKey, before, _ solana.Signature, limit int) ([]ledger.SignatureInfo, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []ledger.SignatureInfo
	for _, b := range slices.Backward(h.blocks) {
		if b.Slot < h.first {
			break
		}
		for _, tx := range b.Transactions { // not the order of execution
			all = append(all, ledger.SignatureInfo{Signature: tx.Signature, Slot: b.Slot, Failed: tx.Failed})
		}
	}
	if before != (solana.Signature{}) {
		i := slices.IndexFunc(all, func(s ledger.SignatureInfo) bool { return s.Signature == before })
		all = all[i+1:]
	}
	return all[:min(limit, len(all))], nil
}

func (h *history) Block(_ context.Context, slot uint64) (*ledger.Block, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reads++
	for _, b := range h.blocks {
		if b.Slot == slot {
			return b, nil
		}
	}
	return nil, ledger.ErrSlotSkipped
}

func (h *history) Tree(context.Context, time.Duration) (ledger.Snapshot, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return ledger.Snapshot{Tree: h.tree, Slot: 1 << 40, Checked: true}, nil
}

func newFollower(t *testing.T, h *history, s commitments.Store) *commitments.Follower {
	t.Helper()
	f, err := commitments.New(commitments.Options{
		Store: s, Chain: h, Tree: h, Pool: h.pool, Log: slog.New(slog.DiscardHandler), Now: time.Now, Interval: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func newStore(t *testing.T, h *history) commitments.Store {
	t.Helper()
	pool := pgtest.Pool(t)
	if err := store.Migrate(t.Context(), pool, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	s, err := store.New(pool)
	if err != nil {
		t.Fatal(err)
	}
	return s.Commitments(h.pool.Address)
}

func sync1(t *testing.T, f *commitments.Follower) {
	t.Helper()
	if err := f.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// wantServed compares the whole list with the leaves 2, 3, 4, … in order.
func wantServed(t *testing.T, f *commitments.Follower, transactions ...uint64) {
	t.Helper()
	got, err := f.List(t.Context(), 0, 1_000_000)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2*len(transactions) {
		t.Fatalf("%d leaves are served, want %d", len(got), 2*len(transactions))
	}
	for i, n := range transactions {
		for k := range uint64(2) {
			l := got[2*i+int(k)]
			if l.Index != uint64(2*i)+k || binary.BigEndian.Uint64(l.Commitment[24:]) != 2*n+k {
				t.Fatalf("leaf %d is not output %d of transaction %d", l.Index, k, n)
			}
		}
	}
}

func TestLeavesAreServedInTheOrderOfTheBlocks(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	s := newStore(t, h)
	f := newFollower(t, h, s)
	sync1(t, f)
	wantServed(t, f)
	h.block(5, h.transact(t, false), h.transact(t, true), h.transact(t, false))
	h.block(7, h.transact(t, false))
	sync1(t, f)
	wantServed(t, f, 1, 3, 4)
	if r := f.Status(); !r.Verified || r.Published != 6 || r.ChainNext != 6 || r.Lag() != 0 {
		t.Errorf("status is %+v, want six leaves verified", r)
	}
	page, err := f.List(t.Context(), 2, 3)
	if err != nil || len(page) != 3 || page[0].Index != 2 {
		t.Errorf("a page from 2 of 3 is %v (%v)", page, err)
	}
	if index, ok, err := f.Find(t.Context(), page[1].Commitment); err != nil || !ok || index != 3 {
		t.Errorf("leaf 3 is found at %d, %v (%v)", index, ok, err)
	}

	reads := h.reads
	h.block(9, h.transact(t, false))
	restarted := newFollower(t, h, s)
	sync1(t, restarted)
	wantServed(t, restarted, 1, 3, 4, 5)
	if h.reads != reads+1 {
		t.Errorf("after a restart %d blocks were read, want the new one alone", h.reads-reads)
	}
	sync1(t, f) // the first follower learns from the database what the second did
	wantServed(t, f, 1, 3, 4, 5)
}

func TestALongHistoryIsReadInPages(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	var want []uint64
	for slot := uint64(1); slot <= 700; slot++ {
		h.block(slot, h.transact(t, false), h.transact(t, false))
		want = append(want, h.next-1, h.next)
	}
	f := newFollower(t, h, newStore(t, h))
	sync1(t, f)
	wantServed(t, f, want...)
}

func TestAWrongOrderIsNeverPublished(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	f := newFollower(t, h, newStore(t, h))
	first := h.transact(t, false)
	h.block(1, first)
	sync1(t, f)
	a, b := h.transact(t, false), h.transact(t, false)
	h.block(2, b, a) // the endpoint lies about the order
	if err := f.Sync(t.Context()); err == nil || !strings.Contains(err.Error(), "another root") {
		t.Errorf("a list with a wrong root gives %v", err)
	}
	wantServed(t, f, 1)
	h.mu.Lock()
	h.blocks[1].Transactions = []ledger.BlockTransaction{a, b}
	h.mu.Unlock()
	sync1(t, f)
	wantServed(t, f, 1, 2, 3)
	if r := f.Status(); r.Problem != "" || !r.Verified {
		t.Errorf("status is %+v after the mend", r)
	}
}

func TestADeadForkIsForgotten(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	s := newStore(t, h)
	f := newFollower(t, h, s)
	h.block(1, h.transact(t, false))
	keep := h.tree.Bytes()
	h.block(2, h.transact(t, false))
	sync1(t, f)
	wantServed(t, f, 1, 2)

	h.mu.Lock()
	h.blocks = h.blocks[:1]
	tree, err := h.pool.Profile.ParseTree(keep)
	if err != nil {
		t.Fatal(err)
	}
	h.tree = tree
	h.mu.Unlock()
	h.block(3, h.transact(t, false))
	for range 3 {
		_ = f.Sync(t.Context()) // the first passes find the mismatch, a later one reads anew
	}
	wantServed(t, f, 1, 3)
}

func TestAShortHistoryIsSaidAndPublishesNothing(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	for slot := uint64(1); slot <= 3; slot++ {
		h.block(slot, h.transact(t, false))
	}
	h.first = 2
	f := newFollower(t, h, newStore(t, h))
	var err error
	for range 4 {
		err = f.Sync(t.Context())
	}
	if err == nil || !strings.Contains(err.Error(), "full history") || !strings.Contains(f.Status().Problem, "4 of 6") {
		t.Errorf("a short history gives %v, status %+v", err, f.Status())
	}
	wantServed(t, f)
	h.mu.Lock()
	h.first = 0
	h.mu.Unlock()
	h.block(4, h.transact(t, false))
	for range 200 {
		_ = f.Sync(t.Context())
	}
	wantServed(t, f, 1, 2, 3, 4)
}

func TestTwoPodsDoNotSpoilEachOthersIndex(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	s := newStore(t, h)
	a, b := newFollower(t, h, s), newFollower(t, h, s)
	var want []uint64
	for slot := uint64(1); slot <= 20; slot++ {
		h.block(slot, h.transact(t, false))
		want = append(want, h.next)
		var wg sync.WaitGroup
		for _, f := range []*commitments.Follower{a, b, a, b} {
			wg.Go(func() {
				if err := f.Sync(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	sync1(t, a)
	wantServed(t, a, want...)
	sync1(t, b)
	wantServed(t, b, want...)
}
