package txmgr_test

import (
	"context"
	"errors"
	"math"
	"slices"
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

// distorted is a chain whose answers a test bends; nil fields leave them as they are.
type distorted struct {
	txmgr.Chain
	statuses func(history bool, s []*onchain.Status)
	height   func(h uint64) uint64
	first    func(slot uint64) uint64
	fees     func(ctx context.Context) error
	simulate func(s *onchain.Simulation)
}

func (d *distorted) Simulate(ctx context.Context, raw []byte, replaceBlockhash bool, minContextSlot uint64) (onchain.Simulation, error) {
	s, err := d.Chain.Simulate(ctx, raw, replaceBlockhash, minContextSlot)
	if d.simulate != nil {
		d.simulate(&s)
	}
	return s, err
}

func (d *distorted) Statuses(ctx context.Context, sigs []solana.Signature) ([]*onchain.Status, uint64, error) {
	s, slot, err := d.Chain.Statuses(ctx, sigs)
	if d.statuses != nil {
		d.statuses(false, s)
	}
	return s, slot, err
}

func (d *distorted) Search(ctx context.Context, sigs []solana.Signature) (onchain.SearchResult, error) {
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

func (d *distorted) PriorityFees(ctx context.Context, writable []solana.PublicKey) ([]uint64, error) {
	if d.fees != nil {
		if err := d.fees(ctx); err != nil {
			return nil, err
		}
	}
	return d.Chain.PriorityFees(ctx, writable)
}

func (w *world) distort(d *distorted) *relay {
	return w.relay(func(c txmgr.Chain) txmgr.Chain { d.Chain = c; return d })
}

// withhold caps every status at a commitment.
func withhold(s []*onchain.Status, most onchain.Commitment) {
	for i, st := range s {
		if st != nil && st.Confirmation.AtLeast(most) {
			capped := *st
			capped.Confirmation = most
			s[i] = &capped
		}
	}
}

func TestAHistoryThatNoLongerReachesBackTakesNothingBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var gone atomic.Bool
	var searched atomic.Int64
	r := w.distort(&distorted{
		statuses: func(history bool, s []*onchain.Status) {
			switch {
			case searched.Load() > 2: // the endpoint has its history again
			case gone.Load():
				clear(s)
				if history {
					searched.Add(1)
				}
			default:
				withhold(s, onchain.Confirmed)
			}
		},
		first: func(slot uint64) uint64 {
			if gone.Load() && searched.Load() <= 3 { // in the same look whose statuses were cleared
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
	w.eventually("it is finalized", func() bool { return w.get(id).Finalized })
	if r.of("reopened") != 0 {
		t.Error("a confirmed submission was taken back because an endpoint forgot its slot")
	}
}

func TestAnAttemptThatIsOnTheChainUnconfirmedIsNotANoteSpentByAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var looks atomic.Int64 // with history
	r := w.distort(&distorted{
		// A lagging node: it knows nothing when the attempt is marked as dead, then too little.
		statuses: func(history bool, s []*onchain.Status) {
			if history {
				looks.Add(1)
			}
			switch n := looks.Load(); {
			case n <= 1:
				clear(s)
			case n <= 3:
				withhold(s, onchain.Processed)
			}
		},
		height: func(h uint64) uint64 { return h + 1_000_000 },
	})
	w.run(r)
	req, to := w.withdrawal(sol)
	id := w.submit(r, req).ID
	w.eventually("the recipient is paid", func() bool { return w.balance(to) > 0 })
	w.clock.advance(time.Minute)
	if s := w.done(id); s.State != submission.Completed || r.of("signed") != 1 || r.of("expired") != 1 {
		t.Errorf("the submission ended as %+v, failure %v, after %d signatures", s, s.Failure, r.of("signed"))
	}
}

func TestANodeThatLagsBehindTheRootFailsNothing(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		lags int64 // simulations
		want submission.State
	}{
		"for moments":                           {lags: 3, want: submission.Completed},
		"for good, which is a program's own no": {lags: math.MaxInt64, want: submission.Failed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var n atomic.Int64
			r := w.distort(&distorted{simulate: func(s *onchain.Simulation) {
				if n.Add(1) <= test.lags {
					s.Err = &shieldpool.TransactionError{Kind: "InstructionError", Detail: "Custom", Instruction: shieldpool.PoolInstruction, Custom: 0x1001}
				}
			}})
			w.run(r)
			req, _ := w.withdrawal(sol)
			if s := w.done(w.submit(r, req).ID); s.State != test.want {
				t.Errorf("the submission ended as %+v, failure %v", s, s.Failure)
			}
		})
	}
}

func TestARootThatTheNodeHasNotSeenIsNotStale(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	unseen := func() submission.Request {
		to := w.newKey().PublicKey()
		in := w.inputs(-sol, to)
		in.Root = [32]byte{31: 9}
		return submission.Request{Proof: w.prove(in), PublicInputs: in.Bytes(), Recipient: to.String()}
	}
	snap, err := w.state.Tree(t.Context(), 0)
	must(t, err)
	must(t, w.store.RecordTreeSlot(t.Context(), w.pool.Address, snap.Slot))
	_, err = w.relay(nil).Submit(t.Context(), unseen())
	_ = wantCode(t, err, refusal.RootNotFound)
	must(t, w.store.RecordTreeSlot(t.Context(), w.pool.Address, snap.Slot+1_000_000)) // another process's node is ahead
	_, err = w.relay(nil).Submit(t.Context(), unseen())
	_ = wantCode(t, err, refusal.ChainUnavailable)
}

// forkedState answers with a tree as old as it was when it was frozen.
type forkedState struct {
	submission.PoolState
	old atomic.Pointer[onchain.Snapshot]
}

func (f *forkedState) Tree(ctx context.Context, maxAge time.Duration) (onchain.Snapshot, error) {
	if old := f.old.Load(); old != nil {
		return *old, nil
	}
	return f.PoolState.Tree(ctx, maxAge)
}

func (f *forkedState) TreeWith(ctx context.Context, root [32]byte, maxAge time.Duration) (onchain.Snapshot, error) {
	if old := f.old.Load(); old != nil {
		return *old, nil
	}
	return f.PoolState.TreeWith(ctx, root, maxAge)
}

func TestANodeThatHasNotSeenTheRootFailsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old, err := w.state.Tree(t.Context(), 0)
	must(t, err)
	w.deposit(10_000_000)
	req, _ := w.withdrawal(sol)
	id := w.submit(w.relay(nil), req).ID
	behind := &forkedState{PoolState: w.state}
	behind.old.Store(&old)
	r := w.assemble(parts{state: behind})
	w.run(r)
	w.eventually("it was tried", func() bool { return w.get(id).Tries > 1 })
	behind.old.Store(nil)
	if s := w.done(id); s.State != submission.Completed {
		t.Errorf("the submission ended as %+v, failure %v", s, s.Failure)
	}
}

func TestFeesThatDoNotComeHoldNothingUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.distort(&distorted{fees: func(ctx context.Context) error {
		<-ctx.Done()
		return &onchain.Unavailable{Kind: onchain.KindCancelled, Err: ctx.Err()}
	}})
	w.run(r)
	req, _ := w.withdrawal(sol)
	if s := w.done(w.submit(r, req).ID); s.State != submission.Completed {
		t.Fatalf("the submission ended as %+v", s)
	}
}

// stuckTree is a pool whose tree hangs once something is spent.
type stuckTree struct {
	submission.PoolState
	stuck atomic.Bool
}

func (s *stuckTree) Tree(ctx context.Context, maxAge time.Duration) (onchain.Snapshot, error) {
	if s.stuck.Load() {
		<-ctx.Done()
		return onchain.Snapshot{}, ctx.Err()
	}
	return s.PoolState.Tree(ctx, maxAge)
}

func (s *stuckTree) TreeWith(ctx context.Context, root [32]byte, maxAge time.Duration) (onchain.Snapshot, error) {
	if s.stuck.Load() {
		return s.Tree(ctx, maxAge)
	}
	return s.PoolState.TreeWith(ctx, root, maxAge)
}

func TestATreeThatHangsDoesNotHoldAnOutcomeUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tree := &stuckTree{PoolState: w.state}
	r := w.assemble(parts{state: tree, chain: func(c txmgr.Chain) txmgr.Chain {
		return &lossy{Chain: c, fate: func(int64) (bool, bool) { tree.stuck.Store(true); return true, true }}
	}})
	w.run(r)
	req, _ := w.withdrawal(sol)
	if s := w.done(w.submit(r, req).ID); s.State != submission.Completed || s.Root != nil {
		t.Errorf("the submission ended as %+v", s)
	}
}

// lateLeaves is an index that reads a block only after the submission is completed.
type lateLeaves struct{ here atomic.Bool }

func (*lateLeaves) Sync(context.Context) error { return errors.New("behind") }
func (l *lateLeaves) Find(_ context.Context, commitments [][32]byte) (map[[32]byte]uint64, error) {
	found := map[[32]byte]uint64{}
	for _, c := range commitments {
		if l.here.Load() {
			found[c] = uint64(c[31])
		}
	}
	return found, nil
}

// lateTree is a chain whose tree can be read only after the submission is completed.
type lateTree struct {
	submission.PoolState
	landed, here *atomic.Bool
}

func (s lateTree) Tree(ctx context.Context, maxAge time.Duration) (onchain.Snapshot, error) {
	if s.landed.Load() && !s.here.Load() {
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
	r := w.assemble(parts{state: lateTree{w.state, &landed, &index.here}, chain: func(c txmgr.Chain) txmgr.Chain {
		return &distorted{Chain: c, statuses: func(_ bool, s []*onchain.Status) {
			landed.Store(landed.Load() || slices.ContainsFunc(s, func(st *onchain.Status) bool { return st != nil }))
			if !index.here.Load() {
				withhold(s, onchain.Confirmed)
			}
		}}
	}})
	w.run(r)
	req, _ := w.withdrawal(sol)
	id := w.submit(r, req).ID
	if s := w.done(id); len(s.LeafIndices) != 0 || s.Root != nil {
		t.Fatalf("leaves %v and root %v are known before they were read", s.LeafIndices, s.Root)
	}
	index.here.Store(true)
	w.eventually("it is finalized", func() bool { return w.get(id).Finalized })
	if got := w.get(id); !cmp.Equal(got.LeafIndices, []uint64{3, 4}) || got.Root == nil {
		t.Errorf("the leaves are %v and the root is %v, want 3 and 4 and a root", got.LeafIndices, got.Root)
	}
}

// deafStore is a database that does not answer when read for the pin.
type deafStore struct {
	submission.Store
	asked chan struct{}
}

func (d deafStore) PinnedProofA(ctx context.Context, _ [32]byte) (string, error) {
	d.asked <- struct{}{}
	<-ctx.Done()
	return "", ctx.Err()
}

func TestRequestsDoNotWaitForOneAnothersPin(t *testing.T) {
	t.Parallel()
	deaf := deafStore{asked: make(chan struct{}, 2)}
	p, err := submission.NewProofAPolicy("auto", deaf, [32]byte{}, time.Now)
	must(t, err)
	long, end := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() { _, err := p.Accepts(long, groth16.Plain); first <- err }()
	<-deaf.asked
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
			t.Errorf("the second request gets %v, want its own deadline", err)
		}
	case err := <-first:
		t.Errorf("the first request ended first, with %v", err)
	case <-time.After(patien / 6):
		t.Error("the second request waits for the first")
	}
	end()
}
