package txmgr_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// alteredChain is a chain whose answers a test changes; nil fields leave them unchanged.
type alteredChain struct {
	txmgr.Chain
	statuses func(history bool, s []*onchain.Status)
	height   func(h uint64) uint64
	first    func(slot uint64) uint64
	fees     func(ctx context.Context) error
	simulate func(s *onchain.Simulation)
}

func (d *alteredChain) Simulate(ctx context.Context, raw []byte, replaceBlockhash bool, minContextSlot uint64) (onchain.Simulation, error) {
	s, err := d.Chain.Simulate(ctx, raw, replaceBlockhash, minContextSlot)
	if d.simulate != nil {
		d.simulate(&s)
	}
	return s, err
}

func (d *alteredChain) Statuses(ctx context.Context, sigs []solana.Signature) ([]*onchain.Status, uint64, error) {
	s, slot, err := d.Chain.Statuses(ctx, sigs)
	if d.statuses != nil {
		d.statuses(false, s)
	}
	return s, slot, err
}

func (d *alteredChain) Search(ctx context.Context, sigs []solana.Signature) (onchain.SearchResult, error) {
	l, err := d.Chain.Search(ctx, sigs)
	if d.statuses != nil {
		d.statuses(true, l.Statuses)
	}
	if d.height != nil {
		l.FinalizedHeight = d.height(l.FinalizedHeight)
	}
	if d.first != nil {
		l.FirstAvailable = d.first(l.FirstAvailable)
	}
	return l, err
}

func (d *alteredChain) PriorityFees(ctx context.Context, writable []solana.PublicKey) ([]uint64, error) {
	if d.fees != nil {
		if err := d.fees(ctx); err != nil {
			return nil, err
		}
	}
	return d.Chain.PriorityFees(ctx, writable)
}

func (w *world) relayOver(d *alteredChain) *relay {
	return w.relay(func(c txmgr.Chain) txmgr.Chain { d.Chain = c; return d })
}

// capCommitment reports no status above the commitment most.
func capCommitment(s []*onchain.Status, most onchain.Commitment) {
	for i, st := range s {
		if st != nil && st.Confirmation.AtLeast(most) {
			capped := *st
			capped.Confirmation = most
			s[i] = &capped
		}
	}
}

func TestTruncatedHistoryRollsNothingBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var gone atomic.Bool
	var searched atomic.Int64
	r := w.relayOver(&alteredChain{
		statuses: func(history bool, s []*onchain.Status) {
			switch {
			case searched.Load() > 2: // the endpoint has its history again
			case gone.Load():
				clear(s)
				if history {
					searched.Add(1)
				}
			default:
				capCommitment(s, onchain.Confirmed)
			}
		},
		first: func(slot uint64) uint64 {
			if gone.Load() && searched.Load() <= 3 { // in the same search that returned no statuses
				return math.MaxInt64
			}
			return slot
		},
	})
	w.run(r)
	req, _ := w.withdrawal(sol)
	id := w.submit(r, req).ID
	w.done(id)
	gone.Store(true)
	w.eventually("the submission is finalized", func() bool { return w.get(id).Finalized })
	if r.count("reopened") != 0 {
		t.Error("a confirmed submission was rolled back because the endpoint's history does not reach its slot")
	}
}

func TestOwnUnconfirmedLandingIsNotReportedAsNullifierSpent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var searches atomic.Int64
	r := w.relayOver(&alteredChain{
		// A lagging node: in the first search it does not know the attempt, and then only as processed.
		statuses: func(history bool, s []*onchain.Status) {
			if history {
				searches.Add(1)
			}
			switch n := searches.Load(); {
			case n <= 1:
				clear(s)
			case n <= 3:
				capCommitment(s, onchain.Processed)
			}
		},
		height: func(h uint64) uint64 { return h + 1_000_000 },
	})
	w.run(r)
	req, to := w.withdrawal(sol)
	id := w.submit(r, req).ID
	w.eventually("the recipient is paid", func() bool { return w.balance(to) > 0 })
	w.clock.advance(time.Minute)
	if s := w.done(id); s.State != submission.Completed || r.count("signed") != 1 || r.count("expired") != 1 {
		t.Errorf("the submission ended as %+v, failure %v, after %d signatures and %d expired attempts; want it completed after 1 and 1", s, s.Failure, r.count("signed"), r.count("expired"))
	}
}

func TestRootUnknownToSimulationIsRetried(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		lags int64 // the number of simulations that do not know the root
		want submission.State
	}{
		"for a moment": {lags: 3, want: submission.Completed},
		"permanently":  {lags: math.MaxInt64, want: submission.Failed}, // like a genuine refusal by the program
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var n atomic.Int64
			r := w.relayOver(&alteredChain{simulate: func(s *onchain.Simulation) {
				if n.Add(1) <= test.lags {
					s.Err = &shieldpool.TransactionError{Kind: "InstructionError", Detail: "Custom", Instruction: shieldpool.PoolInstruction, Custom: 0x1001}
				}
			}})
			w.run(r)
			req, _ := w.withdrawal(sol)
			if s := w.done(w.submit(r, req).ID); s.State != test.want {
				t.Errorf("the submission ended as %+v, failure %v; want it %s", s, s.Failure, test.want)
			}
		})
	}
}

func TestRootNewerThanTheNodeIsNotStale(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	unknownRoot := func() submission.Request {
		to := w.newKey().PublicKey()
		in := w.inputs(-sol, to)
		in.Root = [32]byte{31: 9}
		return submission.Request{Proof: w.prove(in), PublicInputs: in.Bytes(), Recipient: to.String()}
	}
	snap, err := w.state.Tree(t.Context(), 0)
	must(t, err)
	must(t, w.store.RecordTreeSlot(t.Context(), w.pool.Address, snap.Slot))
	_, err = w.relay(nil).Submit(t.Context(), unknownRoot())
	_ = wantCode(t, err, refusal.RootNotFound)
	must(t, w.store.RecordTreeSlot(t.Context(), w.pool.Address, snap.Slot+1_000_000)) // another process's node is ahead
	_, err = w.relay(nil).Submit(t.Context(), unknownRoot())
	_ = wantCode(t, err, refusal.ChainUnavailable)
}

// processedRoot is an index that knows a processed root.
type processedRoot struct {
	noLeaves
	root [32]byte
}

func (p processedRoot) IsProcessed(_ context.Context, root [32]byte) bool { return root == p.root }

// laterState returns the old tree for some reads.
type laterState struct {
	submission.PoolState
	old   onchain.Snapshot
	reads atomic.Int64 // that are left
}

func (s *laterState) TreeWith(ctx context.Context, root [32]byte, maxAge time.Duration) (onchain.Snapshot, error) {
	if s.reads.Add(-1) >= 0 {
		return s.old, nil
	}
	return s.PoolState.TreeWith(ctx, root, maxAge)
}

func TestProofAgainstAProcessedRootWaitsForItsConfirmation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old, err := w.state.Tree(t.Context(), 0)
	must(t, err)
	w.deposit(10_000_000)
	submit := func(processed [32]byte, reads int64, wait time.Duration) error {
		req, _ := w.withdrawal(sol)
		req.Wait = wait
		state := &laterState{PoolState: w.state, old: old}
		state.reads.Store(reads)
		w.leaves = processedRoot{root: processed}
		_, err := w.assemble(parts{state: state}).Submit(t.Context(), req)
		return err
	}
	root := w.inputs(0, solana.PublicKey{}).Root
	if err := submit(root, 3, 2*time.Minute); err != nil {
		t.Errorf("a root that is processed, and then confirmed, is refused: %v", err)
	}
	refused := wantCode(t, submit(root, math.MaxInt64, 0), refusal.ChainUnavailable)
	if !strings.Contains(refused.Message, "processed, but not confirmed") || refused.RetryAfter == 0 {
		t.Errorf("a root that is not confirmed is refused with %+v, want that said, and when to come again", refused)
	}
	_ = wantCode(t, submit([32]byte{1}, math.MaxInt64, 2*time.Minute), refusal.RootNotFound)
}

// staleState returns the tree stored in old, if any, and otherwise the newest tree.
type staleState struct {
	submission.PoolState
	old atomic.Pointer[onchain.Snapshot]
}

func (f *staleState) Tree(ctx context.Context, maxAge time.Duration) (onchain.Snapshot, error) {
	if old := f.old.Load(); old != nil {
		return *old, nil
	}
	return f.PoolState.Tree(ctx, maxAge)
}

func (f *staleState) TreeWith(ctx context.Context, root [32]byte, maxAge time.Duration) (onchain.Snapshot, error) {
	if old := f.old.Load(); old != nil {
		return *old, nil
	}
	return f.PoolState.TreeWith(ctx, root, maxAge)
}

func TestSubmissionWaitsForANodeBehindItsRoot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old, err := w.state.Tree(t.Context(), 0)
	must(t, err)
	w.deposit(10_000_000)
	req, _ := w.withdrawal(sol)
	id := w.submit(w.relay(nil), req).ID
	behind := &staleState{PoolState: w.state}
	behind.old.Store(&old)
	r := w.assemble(parts{state: behind})
	w.run(r)
	w.eventually("the submission was tried twice", func() bool { return w.get(id).Tries > 1 })
	behind.old.Store(nil)
	if s := w.done(id); s.State != submission.Completed {
		t.Errorf("the submission ended as %+v, failure %v; want it completed", s, s.Failure)
	}
}

func TestFeeQueryTimeoutDoesNotBlockSubmissions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.relayOver(&alteredChain{fees: func(ctx context.Context) error {
		<-ctx.Done()
		return &onchain.Unavailable{Kind: onchain.KindCancelled, Err: ctx.Err()}
	}})
	w.run(r)
	req, _ := w.withdrawal(sol)
	if s := w.done(w.submit(r, req).ID); s.State != submission.Completed {
		t.Fatalf("the submission ended as %+v, want it completed", s)
	}
}

// hangingTree is a pool whose tree reads hang while stuck is set.
type hangingTree struct {
	submission.PoolState
	stuck atomic.Bool
}

func (s *hangingTree) Tree(ctx context.Context, maxAge time.Duration) (onchain.Snapshot, error) {
	if s.stuck.Load() {
		<-ctx.Done()
		return onchain.Snapshot{}, ctx.Err()
	}
	return s.PoolState.Tree(ctx, maxAge)
}

func (s *hangingTree) TreeWith(ctx context.Context, root [32]byte, maxAge time.Duration) (onchain.Snapshot, error) {
	if s.stuck.Load() {
		return s.Tree(ctx, maxAge)
	}
	return s.PoolState.TreeWith(ctx, root, maxAge)
}

func TestHangingTreeReadDoesNotDelayOutcomes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tree := &hangingTree{PoolState: w.state}
	r := w.assemble(parts{state: tree, chain: func(c txmgr.Chain) txmgr.Chain {
		return &lossyChain{Chain: c, fate: func(int64) (bool, bool) { tree.stuck.Store(true); return true, true }}
	}})
	w.run(r)
	req, _ := w.withdrawal(sol)
	if s := w.done(w.submit(r, req).ID); s.State != submission.Completed || s.Root != nil {
		t.Errorf("the submission ended as %+v, want it completed without a root", s)
	}
}

// lateLeaves is an index that finds leaves only once readable is set.
type lateLeaves struct {
	noLeaves
	readable atomic.Bool
}

func (*lateLeaves) FindLanded(context.Context, []uint64, [][32]byte) (map[[32]byte]uint64, error) {
	return nil, errors.New("behind")
}

func (l *lateLeaves) Find(_ context.Context, commitments [][32]byte) (map[[32]byte]uint64, error) {
	found := map[[32]byte]uint64{}
	for _, c := range commitments {
		if l.readable.Load() {
			found[c] = uint64(c[31])
		}
	}
	return found, nil
}

// lateTree is a chain whose tree cannot be read from the landing until readable is set.
type lateTree struct {
	submission.PoolState
	landed, readable *atomic.Bool
}

func (s lateTree) Tree(ctx context.Context, maxAge time.Duration) (onchain.Snapshot, error) {
	if s.landed.Load() && !s.readable.Load() {
		return onchain.Snapshot{}, refusal.New(refusal.ChainUnavailable, "no endpoint answers")
	}
	return s.PoolState.Tree(ctx, maxAge)
}

func (s lateTree) TreeWith(ctx context.Context, _ [32]byte, maxAge time.Duration) (onchain.Snapshot, error) {
	return s.Tree(ctx, maxAge)
}

func TestLateLeavesAndRootAreAddedAtFinality(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	index := new(lateLeaves)
	w.leaves = index
	var landed atomic.Bool
	r := w.assemble(parts{state: lateTree{w.state, &landed, &index.readable}, chain: func(c txmgr.Chain) txmgr.Chain {
		return &alteredChain{Chain: c, statuses: func(_ bool, s []*onchain.Status) {
			landed.Store(landed.Load() || slices.ContainsFunc(s, func(st *onchain.Status) bool { return st != nil }))
			if !index.readable.Load() {
				capCommitment(s, onchain.Confirmed)
			}
		}}
	}})
	w.run(r)
	req, _ := w.withdrawal(sol)
	id := w.submit(r, req).ID
	if s := w.done(id); len(s.LeafIndices) != 0 || s.Root != nil {
		t.Fatalf("the leaves are %v and the root is %v before they can be read, want none", s.LeafIndices, s.Root)
	}
	index.readable.Store(true)
	w.eventually("the submission is finalized", func() bool { return w.get(id).Finalized })
	if got := w.get(id); !cmp.Equal(got.LeafIndices, []uint64{3, 4}) || got.Root == nil {
		t.Errorf("the leaves are %v and the root is %v, want 3 and 4 and a root", got.LeafIndices, got.Root)
	}
}

// hangingStore is a database whose reads of the pinned encoding of A hang.
type hangingStore struct {
	submission.Store
	asked chan struct{}
}

func (d hangingStore) PinnedProofA(ctx context.Context, _ [32]byte) (string, error) {
	d.asked <- struct{}{}
	<-ctx.Done()
	return "", ctx.Err()
}

func TestConcurrentPinReadsDoNotBlockEachOther(t *testing.T) {
	t.Parallel()
	hanging := hangingStore{asked: make(chan struct{}, 2)}
	p, err := submission.NewProofAPolicy("auto", hanging, [32]byte{}, time.Now)
	must(t, err)
	long, end := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() { _, err := p.Accepts(long, groth16.Plain); first <- err }()
	<-hanging.asked
	second := make(chan error, 1)
	go func() {
		short, cancel := context.WithTimeout(t.Context(), slot)
		defer cancel()
		_, err := p.Accepts(short, groth16.Plain)
		second <- err
	}()
	select {
	case err := <-second:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the second request ended with %v, want its deadline exceeded", err)
		}
	case err := <-first:
		t.Errorf("the first request ended before the second, with %v", err)
	case <-time.After(testTimeout / 6):
		t.Error("the second request waits for the first")
	}
	end()
}
