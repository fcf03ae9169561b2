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

// noTransfers is a spend cap that refuses transfers alone.
type noTransfers struct{ unlimited }

func (noTransfers) Allow(_ context.Context, transfer bool, _ uint64) (func(bool), error) {
	if transfer {
		return nil, refusal.New(refusal.SpendCapReached, "the cap is reached")
	}
	return func(bool) {}, nil
}

// probing has the proportions of the default timing: a sweep makes one probe, and a held submission
// is tried again after two sweeps.
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
	idle := w.relay(nil) // never runs: its submissions wait for another process
	for range 12 {
		w.submit(idle, w.transfer())
	}
	w.deposit(10_000_000) // the transfers have older roots than the withdrawal
	req, _ := w.withdrawal(sol)
	id := w.submit(idle, req).ID
	w.payer = w.newKey()
	r := w.assemble(parts{spending: noTransfers{}, timing: probing()})
	w.run(r)
	w.eventually("the queue is paused", func() bool { return r.PausedBy() == string(refusal.FeePayerEmpty) })
	must(t, w.chain.Fund(w.payer.PublicKey(), sol))
	if s := w.done(id); s.State != submission.Completed {
		t.Errorf("the submission ended as %+v, failure %v; want it completed", s, s.Failure)
	}
}

func TestAPausedQueueTracksADeadRelaysTransactions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	idle := w.relay(nil)
	for range 12 {
		req, _ := w.withdrawal(sol)
		w.submit(idle, req)
	}
	w.deposit(10_000_000) // the waiting submissions have the older roots
	var db unreachableStore
	dead := w.assemble(parts{chain: lostSends, concurrency: 1, store: func(s submission.Store) submission.Store { db.Store = s; return &db }})
	// The relay processes a submission that it accepts only while its lease is valid. On a busy
	// machine the lease may lapse before a submission is accepted, or before its attempt is recorded.
	var s *submission.Submission
	w.eventually("the relay signs for a submission that it accepted", func() bool {
		req, _ := w.withdrawal(sol)
		dead.HeartbeatOnce(t.Context())
		s = w.submit(dead, req)
		dead.WaitSteps()
		return dead.count("signed") == 1
	})
	w.payer = w.newKey()
	newOwner := w.assemble(parts{timing: probing()})
	w.run(newOwner)
	w.eventually("the queue is paused", func() bool { return newOwner.PausedBy() == string(refusal.FeePayerEmpty) })
	if got := w.done(s.ID); got.State != submission.Completed || newOwner.count("signed") != 0 {
		t.Errorf("the submission ended as %+v after %d signatures of the second relay; want it completed after none", got, newOwner.count("signed"))
	}
	if newOwner.PausedBy() == "" {
		t.Error("the queue is no longer paused, so the test shows nothing")
	}
}

// unreadableState is a pool whose tree cannot be read while unreadable is set.
type unreadableState struct {
	submission.PoolState
	unreadable atomic.Bool
}

func (s *unreadableState) Tree(ctx context.Context, maxAge time.Duration) (onchain.Snapshot, error) {
	if s.unreadable.Load() {
		return onchain.Snapshot{}, refusal.New(refusal.ChainUnavailable, "the plan is used up")
	}
	return s.PoolState.Tree(ctx, maxAge)
}

func (s *unreadableState) TreeWith(ctx context.Context, _ [32]byte, maxAge time.Duration) (onchain.Snapshot, error) {
	return s.Tree(ctx, maxAge)
}

// The number of processes is scaled by the due submissions, so submissions that no process can
// advance must not count as due.
func TestQueuePausesWhileChainIsUnreadable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	idle := w.relay(nil) // never runs: its submissions wait for another process
	var ids []uuid.UUID
	for range 12 {
		ids = append(ids, w.submit(idle, w.transfer()).ID)
	}
	state := &unreadableState{PoolState: w.state}
	state.unreadable.Store(true)
	r := w.assemble(parts{state: state, timing: probing(), concurrency: 2})
	w.run(r)
	w.eventually("the queue is paused", func() bool { return r.PausedBy() == txmgr.HoldChain })
	w.eventually("no submission is due", func() bool {
		b, err := w.store.Backlog(t.Context())
		must(t, err)
		return b.Due == 0 && b.Held[txmgr.HoldChain] == int64(len(ids))
	})
	state.unreadable.Store(false)
	for _, id := range ids {
		if s := w.done(id); s.State != submission.Completed {
			t.Errorf("the submission ended as %+v, failure %v; want it completed", s, s.Failure)
		}
	}
	w.eventually("the queue is not held", func() bool { return r.PausedBy() == "" })
}

// A process whose capacity is full of sent transactions tries nothing new, but still notices that
// the chain cannot be read.
func TestQueuePausesAtFullCapacity(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, 2*time.Second) // sent transactions do not expire meanwhile
	idle := w.relay(nil)              // never runs
	const queue, capacity = 12, 2
	for range queue {
		w.submit(idle, w.transfer())
	}
	state := &unreadableState{PoolState: w.state}
	r := w.assemble(parts{state: state, chain: lostSends, timing: probing(), concurrency: capacity})
	w.run(r)
	w.eventually("all capacity is used", func() bool { return r.count("signed") == capacity })
	state.unreadable.Store(true)
	w.eventually("no submission is due", func() bool {
		b, err := w.store.Backlog(t.Context())
		must(t, err)
		return b.Due == 0 && b.Held[txmgr.HoldChain] == queue-capacity
	})
	state.unreadable.Store(false)
	w.eventually("the queue is not held", func() bool { return r.PausedBy() == "" })
}

// noSubmitChain accepts no transaction while failing is set; all other calls work.
type noSubmitChain struct {
	txmgr.Chain
	failing atomic.Bool
}

func (c *noSubmitChain) Send(ctx context.Context, raw []byte, how onchain.Sending, minContextSlot uint64) error {
	if c.failing.Load() {
		return &onchain.Unavailable{Method: "sendTransaction", Kind: onchain.KindRateLimited}
	}
	return c.Chain.Send(ctx, raw, how, minContextSlot)
}

// A submit-only endpoint may be down, or its quota used up, while other endpoints can be read.
func TestQueuePausesWhileNoEndpointAcceptsSends(t *testing.T) {
	if testing.Short() {
		t.Skip("the test waits for half a minute of slots")
	}
	t.Parallel()
	w := newWorldOf(t, 2*time.Second)
	idle := w.relay(nil) // never runs
	const queue, capacity = 12, 2
	var ids []uuid.UUID
	for range queue {
		ids = append(ids, w.submit(idle, w.transfer()).ID)
	}
	var chain *noSubmitChain
	r := w.assemble(parts{timing: probing(), concurrency: capacity, chain: func(c txmgr.Chain) txmgr.Chain {
		chain = &noSubmitChain{Chain: c}
		chain.failing.Store(true)
		return chain
	}})
	w.run(r)
	w.eventually("no submission is due", func() bool {
		b, err := w.store.Backlog(t.Context())
		must(t, err)
		return b.Due == 0 && b.Held[txmgr.HoldChain] == queue-capacity
	})
	if r.count("signed") != capacity {
		t.Errorf("%d attempts were signed, want %d", r.count("signed"), capacity)
	}
	chain.failing.Store(false)
	for _, id := range ids {
		if s := w.done(id); s.State != submission.Completed {
			t.Errorf("the submission ended as %+v, failure %v; want it completed", s, s.Failure)
		}
	}
	w.eventually("the queue is not held", func() bool { return r.PausedBy() == "" })
}

// flakyState fails every second read once two attempts are signed, and records whether the queue was
// ever paused.
type flakyState struct {
	submission.PoolState
	relay  atomic.Pointer[relay]
	reads  atomic.Int64
	paused atomic.Bool
}

func (s *flakyState) Tree(ctx context.Context, maxAge time.Duration) (onchain.Snapshot, error) {
	r := s.relay.Load()
	if r == nil || r.count("signed") < 2 {
		return s.PoolState.Tree(ctx, maxAge)
	}
	s.paused.Store(s.paused.Load() || r.PausedBy() != "")
	if s.reads.Add(1)%2 == 1 {
		return onchain.Snapshot{}, refusal.New(refusal.ChainUnavailable, "one answer is lost")
	}
	return s.PoolState.Tree(ctx, maxAge)
}

func (s *flakyState) TreeWith(ctx context.Context, _ [32]byte, maxAge time.Duration) (onchain.Snapshot, error) {
	return s.Tree(ctx, maxAge)
}

func TestOneFailedReadDoesNotPauseTheQueue(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, 2*time.Second) // sent transactions do not expire meanwhile
	idle := w.relay(nil)              // never runs
	const queue, capacity = 12, 2
	for range queue {
		w.submit(idle, w.transfer())
	}
	state := &flakyState{PoolState: w.state}
	r := w.assemble(parts{state: state, chain: lostSends, timing: probing(), concurrency: capacity})
	state.relay.Store(r)
	w.run(r)
	w.eventually("the pool is read more than 12 times", func() bool { return state.reads.Load() > 12 })
	if state.paused.Load() {
		t.Error("the queue was paused after a single failed read")
	}
}

// A worker whose queue is paused claims submissions that may be on the chain and, of the others, the
// one that has waited longest, regardless of its root.
func TestProbeClaimsTheLongestWaitingSubmission(t *testing.T) {
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
				t.Fatalf("round %d: probe %d claimed %d submissions, want only the one that has waited longest", round, i, len(got))
			}
			must(t, w.store.Release(t.Context(), got[0].Lease, 0, string(refusal.FeePayerEmpty)))
		}
	}
}
