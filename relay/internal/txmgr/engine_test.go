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

func TestAWithdrawalLandsAndIsFinalized(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.relay(nil)
	w.run(r)
	req, to := w.withdrawal(sol)
	s := w.done(w.submit(r, req).ID)
	if s.State != submission.Completed || s.Signature == nil || s.Slot == 0 || s.Root == nil {
		t.Fatalf("the submission ended as %+v, want it completed", s)
	}
	if got, want := w.balance(to), uint64(sol-5_000_000-3_000_000); got != want {
		t.Errorf("the recipient holds %d lamports, want %d", got, want)
	}
	w.eventually("the submission is finalized", func() bool { return w.get(s.ID).Finalized })
	if encoding, err := w.store.PinnedProofA(t.Context(), w.key.Hash()); err != nil || encoding != "plain" {
		t.Errorf("the pinned encoding of A is %q (%v), want plain", encoding, err)
	}
	if r.count("signed") != 1 {
		t.Errorf("%d transactions were signed, want one", r.count("signed"))
	}
	if n := r.count("landed within a life: true"); n != 1 {
		t.Errorf("%d landings are counted within the life of a blockhash, want one", n)
	}
	again, err := r.Submit(t.Context(), req)
	if err != nil || again.ID != s.ID || again.State != submission.Completed {
		t.Errorf("the repeated request returned %+v, error %v; want the first submission", again, err)
	}
}

// lossyChain loses sends. fate returns, for the n-th send, whether it reaches the chain, and whether the
// relay gets the answer.
type lossyChain struct {
	txmgr.Chain
	fate func(n int64) (arrives, answered bool)
	n    atomic.Int64
}

func (l *lossyChain) Send(ctx context.Context, raw []byte, how onchain.Sending, minContextSlot uint64) error {
	arrives, answered := l.fate(l.n.Add(1))
	if arrives {
		if err := l.Chain.Send(ctx, raw, how, minContextSlot); err != nil {
			return err
		}
	}
	if !answered {
		return &onchain.Unavailable{Method: "sendTransaction", Kind: "timeout"}
	}
	return nil
}

func TestTimedOutSendThatLandedIsSignedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.relay(func(c txmgr.Chain) txmgr.Chain {
		return &lossyChain{Chain: c, fate: func(int64) (bool, bool) { return true, false }}
	})
	w.run(r)
	req, to := w.withdrawal(sol)
	if s := w.done(w.submit(r, req).ID); s.State != submission.Completed {
		t.Fatalf("the submission ended as %+v, want it completed", s)
	}
	if r.count("signed") != 1 || w.balance(to) != sol-8_000_000 {
		t.Errorf("%d transactions were signed and the recipient holds %d lamports", r.count("signed"), w.balance(to))
	}
}

func TestLostSendIsRebroadcastUnchanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.relay(func(c txmgr.Chain) txmgr.Chain {
		return &lossyChain{Chain: c, fate: func(n int64) (bool, bool) { return n > 2, true }}
	})
	w.run(r)
	req, _ := w.withdrawal(sol)
	if s := w.done(w.submit(r, req).ID); s.State != submission.Completed {
		t.Fatalf("the submission ended as %+v, want it completed", s)
	}
	if r.count("signed") != 1 || r.count("rebroadcast") < 2 {
		t.Errorf("%d transactions were signed and %d rebroadcast; want 1 signed and at least 2 rebroadcast", r.count("signed"), r.count("rebroadcast"))
	}
}

func TestNewAttemptIsSignedOnlyAfterTheOldExpired(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var losing atomic.Bool
	losing.Store(true)
	r := w.relay(func(c txmgr.Chain) txmgr.Chain {
		return &lossyChain{Chain: c, fate: func(int64) (bool, bool) { return !losing.Load(), true }}
	})
	w.run(r)
	req, to := w.withdrawal(sol)
	id := w.submit(r, req).ID
	w.eventually("the first attempt is signed", func() bool { return r.count("signed") == 1 })
	w.clock.advance(time.Minute)
	w.eventually("the first attempt is rebroadcast", func() bool { return r.count("rebroadcast") > 1 })
	if r.count("expired") != 0 || r.count("signed") != 1 {
		t.Fatal("an attempt counts as expired by the clock, although its blockhash is still valid")
	}
	w.chain.Advance(150 + 32)
	losing.Store(false)
	w.eventually("the first attempt is dead", func() bool { return r.count("expired") == 1 })
	if s := w.done(id); s.State != submission.Completed {
		t.Fatalf("the submission ended as %+v, want it completed", s)
	}
	if r.count("signed") != 2 || w.balance(to) != sol-8_000_000 {
		t.Errorf("%d transactions were signed and the recipient holds %d lamports", r.count("signed"), w.balance(to))
	}
}

// unreachableStore is a database that a process cannot reach while cut is set.
type unreachableStore struct {
	submission.Store
	cut atomic.Bool
}

func (s *unreachableStore) err() error {
	if s.cut.Load() {
		return refusal.New(refusal.DatabaseUnavailable, "cut off")
	}
	return nil
}

func (s *unreachableStore) Heartbeat(ctx context.Context, w txmgr.Worker, lease time.Duration) (bool, error) {
	if err := s.err(); err != nil {
		return false, err
	}
	return s.Store.Heartbeat(ctx, w, lease)
}

func (s *unreachableStore) Claim(ctx context.Context, worker uuid.UUID, limit int) ([]*txmgr.Job, error) {
	if err := s.err(); err != nil {
		return nil, err
	}
	return s.Store.Claim(ctx, worker, limit)
}

func (s *unreachableStore) Release(ctx context.Context, l txmgr.Lease, delay time.Duration, hold string) error {
	if err := s.err(); err != nil {
		return err
	}
	return s.Store.Release(ctx, l, delay, hold)
}

func (s *unreachableStore) Complete(ctx context.Context, l []submission.Landing) ([]txmgr.Lease, error) {
	if err := s.err(); err != nil {
		return nil, err
	}
	return s.Store.Complete(ctx, l)
}

func (s *unreachableStore) FreeDeadProcesses(ctx context.Context) (int, error) {
	if err := s.err(); err != nil {
		return 0, err
	}
	return s.Store.FreeDeadProcesses(ctx)
}

func (s *unreachableStore) ReleaseAll(ctx context.Context, worker uuid.UUID) (int, error) {
	if err := s.err(); err != nil {
		return 0, err
	}
	return s.Store.ReleaseAll(ctx, worker)
}

// lostSends is a chain that accepts sends and never forwards them.
func lostSends(c txmgr.Chain) txmgr.Chain {
	return &lossyChain{Chain: c, fate: func(int64) (bool, bool) { return false, true }}
}

func TestAnotherRelayFinishesADeadRelaysWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var db unreachableStore
	dead := w.assemble(parts{chain: lostSends, store: func(s submission.Store) submission.Store { db.Store = s; return &db }})
	kill := w.run(dead)
	newOwner := w.relay(nil)
	w.run(newOwner)
	id := w.submitTo(dead).ID
	w.eventually("the first relay has signed", func() bool { return dead.count("signed") == 1 })
	db.cut.Store(true)
	kill()
	s := w.done(id)
	if s.State != submission.Completed {
		t.Fatalf("the submission ended as %+v, want it completed", s)
	}
	if newOwner.count("signed") != 0 || newOwner.count("lease reaped") == 0 {
		t.Errorf("the second relay signed %d transactions and freed leases %d times; want 0 and at least 1", newOwner.count("signed"), newOwner.count("lease reaped"))
	}
}

// submitTo waits until the relay is registered as a worker, and submits a request that the relay
// processes itself.
func (w *world) submitTo(r *relay) *submission.Submission {
	w.t.Helper()
	w.eventually("the relay is registered as a worker", func() bool {
		var registered bool
		must(w.t, w.store.Pool.QueryRow(w.t.Context(), `SELECT EXISTS (SELECT FROM workers WHERE id = $1)`, r.Worker).Scan(&registered))
		return registered
	})
	req, _ := w.withdrawal(sol)
	s := w.submit(r, req)
	if s.State != submission.Processing {
		w.t.Fatalf("the accepted submission is %+v, want it processing", s)
	}
	return s
}

func TestStoppedRelayReleasesItsLeases(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.relay(lostSends)
	stop := w.run(first)
	id := w.submitTo(first).ID
	w.eventually("the first relay has signed", func() bool { return first.count("signed") == 1 })
	stop()
	second := w.relay(nil)
	// The stopped relay released its leases itself.
	if n, err := w.store.FreeDeadProcesses(t.Context()); err != nil || n != 0 {
		t.Fatalf("%d leases of the stopped relay had to be freed (%v), want 0", n, err)
	}
	w.run(second)
	if s := w.done(id); s.State != submission.Completed || second.count("signed") != 0 {
		t.Errorf("the submission ended as %+v after %d new signatures; want it completed after none", s, second.count("signed"))
	}
	if first.count("lease handed_over") == 0 {
		t.Error("the stopped relay reports no lease as handed over")
	}
}

func TestEmptyFeePayerHoldsSubmissionsUntilFunded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.relay(nil)
	req, _ := w.withdrawal(sol)
	id := w.submit(r, req).ID
	w.payer = w.newKey()
	unfunded := w.relay(nil)
	w.run(unfunded)
	w.eventually("the submission is held", func() bool { return unfunded.count("held") > 1 })
	if s := w.get(id); s.Done() {
		t.Fatalf("the submission ended because the payer is empty: %+v", s)
	}
	other, _ := w.withdrawal(sol)
	_, err := unfunded.Submit(t.Context(), other)
	_ = wantCode(t, err, refusal.FeePayerEmpty)
	must(t, w.chain.Fund(w.payer.PublicKey(), sol))
	if s := w.done(id); s.State != submission.Completed {
		t.Errorf("the submission ended as %+v, want it completed", s)
	}
}

func TestEvictedRootFailsUnsignedAndFreesNotes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.relay(nil)
	req, _ := w.withdrawal(sol)
	s := w.submit(r, req)
	for range 50 {
		w.deposit(10_000_000)
	}
	w.run(r)
	done := w.done(s.ID)
	if done.State != submission.Failed || done.Failure.Code != refusal.RootNotFound || r.count("signed") != 0 {
		t.Fatalf("the submission ended as %+v after %d signatures", done, r.count("signed"))
	}
	if current, ok := done.Failure.Fields["current_root"].(string); !ok || len(current) != 64 {
		t.Errorf("the failure does not name the current root: %v", done.Failure.Fields)
	}
	if leaves := done.Failure.Fields["next_index"]; leaves != 102.0 {
		t.Errorf("the current root has %v leaves, want 102 of 51 deposits", leaves)
	}
	in := done.Call.Inputs
	snap, err := w.state.Tree(t.Context(), 0)
	must(t, err)
	in.Root = snap.Tree.Root
	req.PublicInputs, req.Proof = in.Bytes(), w.prove(in)
	if again := w.done(w.submit(r, req).ID); again.ID == s.ID || again.State != submission.Completed {
		t.Errorf("with a new proof the submission ended as %+v, want a new one that completed", again)
	}
}

func TestNoteSpentByOthersFailsWithItsIndex(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.relay(nil)
	req, to := w.withdrawal(sol)
	s := w.submit(r, req)
	thief := w.newKey()
	must(t, w.chain.Fund(thief.PublicKey(), sol))
	w.land(thief, w.get(s.ID).Call)
	w.run(r)
	done := w.done(s.ID)
	if done.State != submission.Failed || done.Failure.Code != refusal.NullifierSpent || done.Failure.Fields["nullifier_index"] != 0.0 {
		t.Fatalf("the submission ended as %+v, failure %+v", done, done.Failure)
	}
	if w.balance(to) != sol-8_000_000 {
		t.Error("the recipient was not paid exactly once")
	}
}

func TestWaitReturnsAtTheOutcomeOrTheTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.relay(nil)
	listening, end := context.WithCancel(t.Context())
	defer end()
	go r.Reader.Run(listening, w.store, r.ClaimSoon)
	req, _ := w.withdrawal(sol)
	id := w.submit(r, req).ID
	short, cancel := context.WithTimeout(t.Context(), 3*slot)
	defer cancel()
	if s, err := r.Wait(short, id); err != nil || s.State != submission.Pending {
		t.Errorf("Wait returned %+v, error %v; want a pending submission", s, err)
	}
	w.run(r)
	if s, err := r.Wait(t.Context(), id); err != nil || s.State != submission.Completed {
		t.Errorf("Wait returned %+v, error %v; want a completed submission", s, err)
	}
	r.Reader.Close()
	brief, cancelBrief := context.WithTimeout(t.Context(), slot)
	defer cancelBrief()
	if _, err := r.Wait(brief, uuid.New()); err == nil {
		t.Error("Wait returned no error for an unknown submission")
	}
}

// slowSends delays sends and records whether one was cancelled.
type slowSends struct {
	txmgr.Chain
	sending   chan struct{}
	cancelled atomic.Bool
}

func (s *slowSends) Send(ctx context.Context, raw []byte, how onchain.Sending, minContextSlot uint64) error {
	select {
	case s.sending <- struct{}{}:
	default:
	}
	select {
	case <-ctx.Done():
		s.cancelled.Store(true)
		return ctx.Err()
	case <-time.After(10 * slot):
	}
	return s.Chain.Send(ctx, raw, how, minContextSlot)
}

func TestAShutdownNeverCancelsASend(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	slow := &slowSends{sending: make(chan struct{}, 1)}
	r := w.relay(func(c txmgr.Chain) txmgr.Chain { slow.Chain = c; return slow })
	stop := w.run(r)
	req, _ := w.withdrawal(sol)
	id := w.submit(r, req).ID
	<-slow.sending
	stop()
	if slow.cancelled.Load() {
		t.Error("the shutdown cancelled a send")
	}
	newOwner := w.relay(nil)
	w.run(newOwner)
	if s := w.done(id); s.State != submission.Completed || newOwner.count("signed") != 0 {
		t.Errorf("the submission ended as %+v after %d new signatures; want it completed after none", s, newOwner.count("signed"))
	}
}

// statuslessChain is an endpoint that reports no signature while on is set.
type statuslessChain struct {
	txmgr.Chain
	on atomic.Bool
}

func (a *statuslessChain) Statuses(ctx context.Context, sigs []solana.Signature) ([]*onchain.Status, uint64, error) {
	statuses, slot, err := a.Chain.Statuses(ctx, sigs)
	if a.on.Load() {
		clear(statuses)
	}
	return statuses, slot, err
}

func (a *statuslessChain) Search(ctx context.Context, sigs []solana.Signature) (onchain.SearchResult, error) {
	result, err := a.Chain.Search(ctx, sigs)
	if a.on.Load() {
		clear(result.Statuses)
	}
	return result, err
}

func TestRolledBackSubmissionReturnsToProcessing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fork := new(statuslessChain)
	r := w.relay(func(c txmgr.Chain) txmgr.Chain { fork.Chain = c; return fork })
	w.run(r)
	req, _ := w.withdrawal(sol)
	id := w.submit(r, req).ID
	if s := w.done(id); s.State != submission.Completed {
		t.Fatalf("the submission ended as %+v, want it completed", s)
	}
	fork.on.Store(true)
	w.eventually("the submission is rolled back", func() bool { s := w.get(id); return s.State == submission.Processing && s.RolledBack })
	w.eventually("the attempt is rebroadcast", func() bool { return r.count("rebroadcast") > 0 })
	fork.on.Store(false)
	if s := w.done(id); s.State != submission.Completed || s.RolledBack || r.count("signed") != 1 {
		t.Errorf("the submission ended as %+v after %d signatures; want it completed after 1", s, r.count("signed"))
	}
}
