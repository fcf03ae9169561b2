package txmgr_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
)

// noTransfers is a cap that transfers have reached.
type noTransfers struct{ unlimited }

func (noTransfers) Allow(_ context.Context, transfer bool, _ uint64) (func(bool), error) {
	if transfer {
		return nil, refusal.New(refusal.SpendCapReached, "the cap is reached")
	}
	return func(bool) {}, nil
}

// probing has the proportion of the default timing: a sweep makes one probe, and a held submission
// is tried again after two.
func probing() txmgr.Timing {
	return txmgr.Timing{Lease: lease, Poll: slot, Sweep: 5 * slot, Backoff: slot, BackoffCap: 5 * slot, Hold: 10 * slot}
}

func (w *world) transfer() submission.Request {
	w.t.Helper()
	in := w.inputs(0, solana.PublicKey{})
	return submission.Request{Proof: w.prove(in), PublicInputs: in.Bytes()}
}

func TestOtherHoldsDoNotKeepTheQueuePaused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.relay(nil) // never works: its submissions wait for another process
	for range 12 {
		w.submit(before, w.transfer())
	}
	w.deposit(10_000_000) // the transfers' roots are the older ones
	req, _ := w.withdrawal(sol)
	id := w.submit(before, req).ID
	w.payer = w.newKey()
	r := w.assemble(parts{spending: noTransfers{}, timing: probing()})
	w.run(r)
	w.eventually("the queue is held", func() bool { return r.PausedBy() == string(refusal.FeePayerEmpty) })
	must(t, w.chain.Fund(w.payer.PublicKey(), sol))
	if s := w.done(id); s.State != submission.Completed {
		t.Errorf("the submission ended as %+v, failure %v", s, s.Failure)
	}
}

func TestAPausedQueueTracksADeadRelaysTransactions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.relay(nil)
	for range 12 {
		req, _ := w.withdrawal(sol)
		w.submit(before, req)
	}
	w.deposit(10_000_000) // the waiting submissions have the older roots
	var db severed
	dead := w.assemble(parts{chain: lostSends, concurrency: 1, store: func(s submission.Store) submission.Store { db.Store = s; return &db }})
	// While its lease lasts it claims only what it accepts itself; on a busy machine the lease may be
	// too short for the first tries.
	var s *submission.Submission
	w.eventually("the relay takes what it accepts", func() bool {
		req, _ := w.withdrawal(sol)
		dead.BeatOnce(t.Context())
		s = w.submit(dead, req)
		return s.State == submission.Processing
	})
	dead.WaitSteps()
	if dead.of("signed") != 1 {
		t.Fatal("the first relay has not signed")
	}
	w.payer = w.newKey()
	heir := w.assemble(parts{timing: probing()})
	w.run(heir)
	w.eventually("the queue is held", func() bool { return heir.PausedBy() == string(refusal.FeePayerEmpty) })
	if got := w.done(s.ID); got.State != submission.Completed || heir.of("signed") != 0 {
		t.Errorf("the submission ended as %+v after %d signatures of the heir", got, heir.of("signed"))
	}
	if heir.PausedBy() == "" {
		t.Error("the queue is not held any more: the test shows nothing")
	}
}

// awayState is a pool that cannot be read while away is set.
type awayState struct {
	submission.PoolState
	away atomic.Bool
}

func (s *awayState) Tree(ctx context.Context, maxAge time.Duration) (onchain.Snapshot, error) {
	if s.away.Load() {
		return onchain.Snapshot{}, refusal.New(refusal.ChainUnavailable, "the plan is used up")
	}
	return s.PoolState.Tree(ctx, maxAge)
}

func (s *awayState) TreeWith(ctx context.Context, _ [32]byte, maxAge time.Duration) (onchain.Snapshot, error) {
	return s.Tree(ctx, maxAge)
}

// The number of processes is scaled by the due submissions: a queue that no process can work off
// must not count as due.
func TestAQueueIsHeldWholeWhileNothingOfTheChainCanBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.relay(nil) // never works: its submissions wait for another process
	var ids []uuid.UUID
	for range 12 {
		ids = append(ids, w.submit(before, w.transfer()).ID)
	}
	state := &awayState{PoolState: w.state}
	state.away.Store(true)
	r := w.assemble(parts{state: state, timing: probing(), concurrency: 2})
	w.run(r)
	w.eventually("the queue is held", func() bool { return r.PausedBy() == txmgr.HoldChain })
	w.eventually("the backlog has nothing that is due", func() bool {
		b, err := w.store.Backlog(t.Context())
		must(t, err)
		return b.Due == 0 && b.Held[txmgr.HoldChain] == int64(len(ids))
	})
	state.away.Store(false)
	for _, id := range ids {
		if s := w.done(id); s.State != submission.Completed {
			t.Errorf("the submission ended as %+v, failure %v", s, s.Failure)
		}
	}
	w.eventually("the queue is not held", func() bool { return r.PausedBy() == "" })
}

// A process whose places are all taken by sent transactions tries nothing new.
func TestAQueueBehindSentTransactionsIsPausedToo(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, 2*time.Second) // sent transactions do not expire meanwhile
	before := w.relay(nil)            // never works
	const queue, places = 12, 2
	for range queue {
		w.submit(before, w.transfer())
	}
	state := &awayState{PoolState: w.state}
	r := w.assemble(parts{state: state, chain: lostSends, timing: probing(), concurrency: places})
	w.run(r)
	w.eventually("every place is taken", func() bool { return r.of("signed") == places })
	state.away.Store(true)
	w.eventually("the backlog has nothing that is due", func() bool {
		b, err := w.store.Backlog(t.Context())
		must(t, err)
		return b.Due == 0 && b.Held[txmgr.HoldChain] == queue-places
	})
	state.away.Store(false)
	w.eventually("the queue is not held", func() bool { return r.PausedBy() == "" })
}

// deafChain takes no transaction while deaf is set; all its other calls work.
type deafChain struct {
	txmgr.Chain
	deaf atomic.Bool
}

func (c *deafChain) Send(ctx context.Context, raw []byte, first bool, minContextSlot uint64) error {
	if c.deaf.Load() {
		return &onchain.Unavailable{Method: "sendTransaction", Kind: onchain.KindRateLimited}
	}
	return c.Chain.Send(ctx, raw, first, minContextSlot)
}

// A submit-only endpoint may be gone, or its plan used up, while others are read.
func TestAQueueThatNoEndpointTakesIsHeldToo(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for half a minute of slots")
	}
	t.Parallel()
	w := newWorldOf(t, 2*time.Second)
	before := w.relay(nil) // never works
	const queue, places = 12, 2
	var ids []uuid.UUID
	for range queue {
		ids = append(ids, w.submit(before, w.transfer()).ID)
	}
	var chain *deafChain
	r := w.assemble(parts{timing: probing(), concurrency: places, chain: func(c txmgr.Chain) txmgr.Chain {
		chain = &deafChain{Chain: c}
		chain.deaf.Store(true)
		return chain
	}})
	w.run(r)
	w.eventually("the backlog has nothing that is due", func() bool {
		b, err := w.store.Backlog(t.Context())
		must(t, err)
		return b.Due == 0 && b.Held[txmgr.HoldChain] == queue-places
	})
	if r.of("signed") != places {
		t.Errorf("%d attempts were signed, want %d", r.of("signed"), places)
	}
	chain.deaf.Store(false)
	for _, id := range ids {
		if s := w.done(id); s.State != submission.Completed {
			t.Errorf("the submission ended as %+v, failure %v", s, s.Failure)
		}
	}
	w.eventually("the queue is not held", func() bool { return r.PausedBy() == "" })
}

// flakyState fails every second reading, and records whether the queue was ever held.
type flakyState struct {
	submission.PoolState
	relay atomic.Pointer[relay]
	looks atomic.Int64
	held  atomic.Bool
}

func (s *flakyState) Tree(ctx context.Context, maxAge time.Duration) (onchain.Snapshot, error) {
	r := s.relay.Load()
	if r == nil || r.of("signed") < 2 {
		return s.PoolState.Tree(ctx, maxAge)
	}
	s.held.Store(s.held.Load() || r.PausedBy() != "")
	if s.looks.Add(1)%2 == 1 {
		return onchain.Snapshot{}, refusal.New(refusal.ChainUnavailable, "one answer is lost")
	}
	return s.PoolState.Tree(ctx, maxAge)
}

func (s *flakyState) TreeWith(ctx context.Context, _ [32]byte, maxAge time.Duration) (onchain.Snapshot, error) {
	return s.Tree(ctx, maxAge)
}

func TestOneLostAnswerHoldsNoQueue(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, 2*time.Second) // sent transactions do not expire meanwhile
	before := w.relay(nil)            // never works
	const queue, places = 12, 2
	for range queue {
		w.submit(before, w.transfer())
	}
	state := &flakyState{PoolState: w.state}
	r := w.assemble(parts{state: state, chain: lostSends, timing: probing(), concurrency: places})
	state.relay.Store(r)
	w.run(r)
	w.eventually("the pool is looked at again and again", func() bool { return state.looks.Load() > 12 })
	if state.held.Load() {
		t.Error("the queue was held after one answer that was lost")
	}
}

// A worker whose queue is paused claims what may be on the chain and, of the rest, the submission
// that has waited longest, regardless of its root.
func TestProbesGoRound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.relay(nil)
	var ids []uuid.UUID
	for range 3 {
		req, _ := w.withdrawal(sol)
		ids = append(ids, w.submit(r, req).ID)
	}
	worker := uuid.New()
	_, err := w.store.Heartbeat(t.Context(), txmgr.Worker{ID: worker}, lease*60)
	must(t, err)
	for round := range 2 {
		for i, id := range ids {
			got, err := w.store.Probe(t.Context(), worker, 64)
			must(t, err)
			if len(got) != 1 || got[0].ID != id {
				t.Fatalf("round %d, probe %d takes %d submissions: want the one that has waited longest", round, i, len(got))
			}
			must(t, w.store.Release(t.Context(), got[0].Lease, 0, string(refusal.FeePayerEmpty)))
		}
	}
}
