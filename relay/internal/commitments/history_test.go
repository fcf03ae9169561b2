package commitments_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/commitments"
	"github.com/relaypool/relaypool/relay/internal/pgtest"
	"github.com/relaypool/relaypool/relay/internal/store"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// pageLimit is the largest number of signatures that the endpoint returns, even when asked
// for more. Some endpoints do that.
const pageLimit = 400

// checkpointEvery is so small that every test restores trees, also in the middle of a slot.
const checkpointEvery = 3

func TestMain(m *testing.M) { pgtest.Main(m) }

// history has a chain's blocks and the tree that results from them. It answers like an endpoint:
// it lists the newest signatures first, and the signatures of one slot in any order.
type history struct {
	t    *testing.T
	pool *shieldpool.Pool

	mu     sync.Mutex
	blocks []*onchain.Block
	tree   *shieldpool.TreeAccount
	// old is the tree that a read returns which may be older; nil means the same.
	old *shieldpool.TreeAccount
	// processed is the tree at the processed commitment; nil means the same.
	processed *shieldpool.TreeAccount
	next      uint64
	// first is the first slot that the endpoint lists. It does not list unlisted slots yet. It has
	// no blocks of slots below pruned.
	first, pruned uint64
	unlisted      map[uint64]bool
	unchecked     bool
	// treeSlot is the slot of the tree; finalized is the newest finalized slot.
	treeSlot, finalized uint64
	doubtful            bool
	// claimed is the first block that the endpoint says it has; 0 for the truth.
	claimed uint64
	// endless makes its lists go on with new transactions of the newest slot.
	endless bool
	// other is the endpoint that is asked after a Distrust; nil while there is only one.
	other *history
	// lists, reads and treeReads count calls that list signatures, read a block and read the tree.
	// Each read of the tree waits until it can send to gate, unless that is nil.
	lists, reads, treeReads int
	// minSlot and maxAge are what the last read of the tree asked for.
	minSlot uint64
	maxAge  time.Duration
	gate    chan struct{}
	elapsed atomic.Int64
}

func newHistory(t *testing.T) *history {
	t.Helper()
	p := shieldpool.ShieldPoolV1()
	pool, err := p.Pool(p.Mints[0])
	must(t, err)
	return &history{t: t, pool: pool, tree: p.NewTree(solana.PublicKey{}), unlisted: map[uint64]bool{}, treeSlot: 1 << 40}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (h *history) now() time.Time {
	return time.Unix(1_700_000_000, 0).Add(time.Duration(h.elapsed.Load()))
}
func (h *history) advance(d time.Duration) { h.elapsed.Add(int64(d)) }

// leaf returns output k of transaction n.
func leaf(n, k uint64) (c [32]byte) {
	binary.BigEndian.PutUint64(c[24:], 2*n+k)
	return c
}

func (h *history) data(n uint64) []byte {
	h.t.Helper()
	in := &shieldpool.PublicInputs{Commitments: [2][32]byte{leaf(n, 0), leaf(n, 1)}}
	data, err := h.pool.Profile.Data(&shieldpool.Call{Proof: make([]byte, shieldpool.ProofLength), Inputs: in})
	must(h.t, err)
	return data
}

// transaction makes a transaction that appends two leaves. It also has calls that append nothing
// to this tree: of another program, of another pool, and with another tag.
func (h *history) transaction(n uint64, failed bool) onchain.BlockTransaction {
	h.t.Helper()
	program, tree := h.pool.Profile.ProgramID, []solana.PublicKey{h.pool.Address, h.pool.MerkleTree}
	tx := onchain.BlockTransaction{Failed: failed, Instructions: []onchain.Instruction{
		{ProgramID: solana.SystemProgramID, Data: h.data(1_000_000), Accounts: tree},
		{ProgramID: program, Data: h.data(1_000_001), Accounts: []solana.PublicKey{{1}, {2}}},
		{ProgramID: program, Data: []byte{h.pool.Profile.Tags.Initialize}, Accounts: tree},
		{ProgramID: program, Data: h.data(n), Accounts: tree},
	}}
	binary.BigEndian.PutUint64(tx.Signature[:], n)
	return tx
}

// transact makes the chain's next transaction, which succeeds.
func (h *history) transact() onchain.BlockTransaction {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next++
	for k := range uint64(2) {
		must(h.t, h.tree.Append(leaf(h.next, k)))
	}
	return h.transaction(h.next, false)
}

// fail makes the chain's next transaction, which fails and appends nothing.
func (h *history) fail() onchain.BlockTransaction {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next++
	return h.transaction(h.next, true)
}

func (h *history) block(slot uint64, txs ...onchain.BlockTransaction) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.blocks = append(h.blocks, &onchain.Block{Slot: slot, Transactions: txs})
}

// fork replaces the chain by one with the given transactions, by slot.
func (h *history) fork(slots map[uint64][]uint64) {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.blocks, h.tree = nil, h.pool.Profile.NewTree(solana.PublicKey{})
	for slot, transactions := range slots {
		b := &onchain.Block{Slot: slot}
		for _, n := range transactions {
			b.Transactions = append(b.Transactions, h.transaction(n, false))
		}
		h.blocks = append(h.blocks, b)
	}
	slices.SortFunc(h.blocks, func(a, b *onchain.Block) int { return cmp.Compare(a.Slot, b.Slot) })
	for _, b := range h.blocks {
		for _, n := range slots[b.Slot] {
			for k := range uint64(2) {
				must(h.t, h.tree.Append(leaf(n, k)))
			}
		}
	}
}

func (h *history) set(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
}

func (h *history) Distrust(int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.other == nil {
		return false
	}
	h.blocks, h.other.blocks, h.endless = h.other.blocks, h.blocks, false
	return true
}

func (h *history) SignaturesFor(_ context.Context, _ solana.PublicKey, before, _ solana.Signature, limit int) ([]onchain.SignatureInfo, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lists++
	if h.endless {
		return []onchain.SignatureInfo{{Signature: solana.Signature{byte(h.lists), byte(h.lists >> 8)}, Slot: 1 << 30}}, nil
	}
	var all []onchain.SignatureInfo
	for _, b := range slices.Backward(h.blocks) {
		if b.Slot < h.first {
			break
		}
		if h.unlisted[b.Slot] {
			continue
		}
		for _, tx := range b.Transactions { // not the order of execution
			all = append(all, onchain.SignatureInfo{Signature: tx.Signature, Slot: b.Slot, Failed: tx.Failed})
		}
	}
	if before != (solana.Signature{}) {
		i := slices.IndexFunc(all, func(s onchain.SignatureInfo) bool { return s.Signature == before })
		all = all[i+1:]
	}
	return all[:min(limit, pageLimit, len(all))], nil
}

func (h *history) Block(_ context.Context, slot uint64, _ solana.PublicKey) (*onchain.Block, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reads++
	if slot < max(h.first, h.pruned) {
		return nil, fmt.Errorf("getBlock: %w", onchain.ErrBlockPruned)
	}
	for _, b := range h.blocks {
		if b.Slot == slot {
			copied := *b
			return &copied, nil
		}
	}
	return nil, onchain.ErrSlotSkipped
}

func (h *history) FirstAvailableBlock(context.Context) (uint64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(h.first, h.pruned, h.claimed), nil
}

func (h *history) AgreedTree(ctx context.Context, minSlot uint64, maxAge time.Duration) (onchain.Snapshot, error) {
	h.mu.Lock()
	gate := h.gate
	h.treeReads++
	h.minSlot, h.maxAge = minSlot, maxAge
	h.mu.Unlock()
	if gate != nil {
		select {
		case gate <- struct{}{}:
		case <-ctx.Done():
			return onchain.Snapshot{}, ctx.Err()
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	tree := h.tree
	if h.old != nil && maxAge > 0 {
		tree = h.old
	}
	return onchain.Snapshot{Tree: copyOf(tree), Slot: h.treeSlot, Checked: !h.unchecked, Doubtful: h.doubtful}, nil
}

func (h *history) finalizedSlot() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.finalized
}

func newFollower(t *testing.T, h *history, s commitments.Store) *commitments.Follower {
	t.Helper()
	f, err := commitments.New(commitments.Options{
		Store: s, Chain: h, Tree: h, Pool: h.pool, Log: discard(), Now: h.now, Interval: time.Second,
		Finalized: h.finalizedSlot, Subscribed: func() bool { return false }, CheckpointEvery: checkpointEvery,
	})
	must(t, err)
	return f
}

func newStore(t *testing.T, h *history) commitments.Store {
	t.Helper()
	pool := pgtest.Pool(t)
	must(t, store.Migrate(t.Context(), pool, slog.New(slog.DiscardHandler)))
	s, err := store.New(pool)
	must(t, err)
	return s.Commitments(h.pool.Address)
}

// served returns the published list.
func served(t *testing.T, f *commitments.Follower) [][32]byte {
	t.Helper()
	pos, err := f.Store.Position(t.Context())
	must(t, err)
	if pos.Published == 0 {
		return nil
	}
	read, err := f.Store.Read(t.Context(), pos.Generation, 0, int(pos.Published))
	must(t, err)
	leaves := make([][32]byte, len(read))
	for i, l := range read {
		leaves[i] = l.Commitment
	}
	return leaves
}

// wantServed checks that the published leaves are the outputs of the transactions, in order.
func wantServed(t *testing.T, f *commitments.Follower, transactions ...uint64) {
	t.Helper()
	got := served(t, f)
	if len(got) != 2*len(transactions) {
		t.Fatalf("%d leaves are served, want %d", len(got), 2*len(transactions))
	}
	for i, n := range transactions {
		for k := range uint64(2) {
			if index := 2*i + int(k); got[index] != leaf(n, k) {
				t.Fatalf("leaf %d is not output %d of transaction %d", index, k, n)
			}
		}
	}
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
