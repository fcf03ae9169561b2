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
		t.Fatalf("the submission ended as %+v", s)
	}
	if got, want := w.balance(to), uint64(sol-5_000_000-3_000_000); got != want {
		t.Errorf("the recipient holds %d lamports, want %d", got, want)
	}
	w.eventually("it is finalized", func() bool { return w.get(s.ID).Finalized })
	if sign, err := w.store.PinnedProofA(t.Context(), w.key.Hash()); err != nil || sign != "plain" {
		t.Errorf("the pinned sign is %q, want plain (%v)", sign, err)
	}
	if r.of("signed") != 1 {
		t.Errorf("%d transactions were signed, want one", r.of("signed"))
	}
	again, err := r.Submit(t.Context(), req)
	if err != nil || again.ID != s.ID || again.State != submission.Completed {
		t.Errorf("repeating it gives %+v, %v, want the first one", again, err)
	}
}

// lossy loses an engine's sends: fate says, for each send, whether it reaches the chain, and
// whether the engine gets the answer.
type lossy struct {
	txmgr.Chain
	fate func(n int64) (arrives, heard bool)
	n    atomic.Int64
}

func (l *lossy) Send(ctx context.Context, raw []byte, preflight bool, minContextSlot uint64) error {
	arrives, heard := l.fate(l.n.Add(1))
	if arrives {
		if err := l.Chain.Send(ctx, raw, preflight, minContextSlot); err != nil {
			return err
		}
	}
	if !heard {
		return &onchain.Unavailable{Method: "sendTransaction", Kind: "timeout"}
	}
	return nil
}

func TestATimeoutThatActedIsNeitherFailureNorASecondSend(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.relay(func(c txmgr.Chain) txmgr.Chain {
		return &lossy{Chain: c, fate: func(int64) (bool, bool) { return true, false }}
	})
	w.run(r)
	req, to := w.withdrawal(sol)
	if s := w.done(w.submit(r, req).ID); s.State != submission.Completed {
		t.Fatalf("the submission ended as %+v", s)
	}
	if r.of("signed") != 1 || w.balance(to) != sol-8_000_000 {
		t.Errorf("%d transactions were signed and the recipient holds %d", r.of("signed"), w.balance(to))
	}
}

func TestALostSendIsSentAgainByteForByte(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.relay(func(c txmgr.Chain) txmgr.Chain {
		return &lossy{Chain: c, fate: func(n int64) (bool, bool) { return n > 2, true }}
	})
	w.run(r)
	req, _ := w.withdrawal(sol)
	if s := w.done(w.submit(r, req).ID); s.State != submission.Completed {
		t.Fatalf("the submission ended as %+v", s)
	}
	if r.of("signed") != 1 || r.of("rebroadcast") < 2 {
		t.Errorf("signed %d times, sent again %d times, want one signature and at least two sends", r.of("signed"), r.of("rebroadcast"))
	}
}

func TestANewSignatureIsMadeOnlyWhenTheOldOneIsDead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var deaf atomic.Bool
	deaf.Store(true)
	r := w.relay(func(c txmgr.Chain) txmgr.Chain {
		return &lossy{Chain: c, fate: func(int64) (bool, bool) { return !deaf.Load(), true }}
	})
	w.run(r)
	req, to := w.withdrawal(sol)
	id := w.submit(r, req).ID
	w.eventually("the first attempt is signed", func() bool { return r.of("signed") == 1 })
	w.clock.advance(time.Minute)
	w.eventually("it was sent again", func() bool { return r.of("rebroadcast") > 1 })
	if r.of("expired") != 0 || r.of("signed") != 1 {
		t.Fatal("a clock that says so killed an attempt whose blockhash lives")
	}
	w.chain.Advance(150 + 32)
	deaf.Store(false)
	w.eventually("the first attempt is dead", func() bool { return r.of("expired") == 1 })
	if s := w.done(id); s.State != submission.Completed {
		t.Fatalf("the submission ended as %+v", s)
	}
	if r.of("signed") != 2 || w.balance(to) != sol-8_000_000 {
		t.Errorf("%d transactions were signed and the recipient holds %d", r.of("signed"), w.balance(to))
	}
}

// severed is a database that a process has lost for good.
type severed struct {
	submission.Store
	cut atomic.Bool
}

func (s *severed) err() error {
	if s.cut.Load() {
		return refusal.New(refusal.DatabaseUnavailable, "cut off")
	}
	return nil
}

func (s *severed) Heartbeat(ctx context.Context, w txmgr.Worker, lease time.Duration) (bool, error) {
	if err := s.err(); err != nil {
		return false, err
	}
	return s.Store.Heartbeat(ctx, w, lease)
}

func (s *severed) Claim(ctx context.Context, worker uuid.UUID, limit int) ([]*txmgr.Job, error) {
	if err := s.err(); err != nil {
		return nil, err
	}
	return s.Store.Claim(ctx, worker, limit)
}

func (s *severed) Release(ctx context.Context, l txmgr.Lease, delay time.Duration, hold string) error {
	if err := s.err(); err != nil {
		return err
	}
	return s.Store.Release(ctx, l, delay, hold)
}

func (s *severed) Complete(ctx context.Context, l []submission.Landing) ([]txmgr.Lease, error) {
	if err := s.err(); err != nil {
		return nil, err
	}
	return s.Store.Complete(ctx, l)
}

func (s *severed) FreeDeadProcesses(ctx context.Context) (int, error) {
	if err := s.err(); err != nil {
		return 0, err
	}
	return s.Store.FreeDeadProcesses(ctx)
}

func (s *severed) ReleaseAll(ctx context.Context, worker uuid.UUID) (int, error) {
	if err := s.err(); err != nil {
		return 0, err
	}
	return s.Store.ReleaseAll(ctx, worker)
}

// lostSends never reach the chain, and the engine gets no answer.
func lostSends(c txmgr.Chain) txmgr.Chain {
	return &lossy{Chain: c, fate: func(int64) (bool, bool) { return false, true }}
}

func TestAnotherRelayFinishesADeadRelaysWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var db severed
	dead := w.assemble(parts{chain: lostSends, store: func(s submission.Store) submission.Store { db.Store = s; return &db }})
	kill := w.run(dead)
	heir := w.relay(nil)
	w.run(heir)
	id := w.takenBy(dead).ID
	w.eventually("the first relay has signed", func() bool { return dead.of("signed") == 1 })
	db.cut.Store(true)
	kill()
	s := w.done(id)
	if s.State != submission.Completed {
		t.Fatalf("the submission ended as %+v", s)
	}
	if heir.of("signed") != 0 || heir.of("lease reaped") == 0 {
		t.Error("the heir signed anew although the first transaction could land, or freed nothing")
	}
}

// takenBy submits a request that the relay itself works on, once the database knows it.
func (w *world) takenBy(r *relay) *submission.Submission {
	w.t.Helper()
	w.eventually("the relay beats", func() bool {
		var known bool
		must(w.t, w.store.Pool.QueryRow(w.t.Context(), `SELECT EXISTS (SELECT FROM workers WHERE id = $1)`, r.Worker).Scan(&known))
		return known
	})
	req, _ := w.withdrawal(sol)
	s := w.submit(r, req)
	if s.State != submission.Processing {
		w.t.Fatalf("the relay did not take what it accepted: %+v", s)
	}
	return s
}

func TestAStoppedRelayHandsOverAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.relay(lostSends)
	stop := w.run(first)
	id := w.takenBy(first).ID
	w.eventually("the first relay has signed", func() bool { return first.of("signed") == 1 })
	stop()
	second := w.relay(nil)
	// No reaping: handed-over rows are due for every process.
	if n, err := w.store.FreeDeadProcesses(t.Context()); err != nil || n != 0 {
		t.Fatalf("after the hand-over %d leases are left to lapse (%v)", n, err)
	}
	w.run(second)
	if s := w.done(id); s.State != submission.Completed || second.of("signed") != 0 {
		t.Errorf("the submission ended as %+v after %d new signatures", s, second.of("signed"))
	}
	if first.of("lease handed_over") == 0 {
		t.Error("nothing was handed over")
	}
}

func TestADryFeePayerHoldsTheQueueAndFundsResumeIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.relay(nil)
	req, _ := w.withdrawal(sol)
	id := w.submit(r, req).ID
	w.payer = w.newKey()
	dry := w.relay(nil)
	w.run(dry)
	w.eventually("the submission is held", func() bool { return dry.of("held") > 1 })
	if s := w.get(id); s.Done() {
		t.Fatalf("a dry payer ended the submission: %+v", s)
	}
	other, _ := w.withdrawal(sol)
	_, err := dry.Submit(t.Context(), other)
	_ = wantCode(t, err, refusal.FeePayerEmpty)
	must(t, w.chain.Fund(w.payer.PublicKey(), sol))
	if s := w.done(id); s.State != submission.Completed {
		t.Errorf("the submission ended as %+v", s)
	}
}

func TestARootThatLeavesTheRingFailsUnsignedAndFreesItsNotes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.relay(nil)
	req, _ := w.withdrawal(sol)
	s := w.submit(r, req)
	for range 50 {
		w.depositQuietly()
	}
	w.run(r)
	done := w.done(s.ID)
	if done.State != submission.Failed || done.Failure.Code != refusal.RootNotFound || r.of("signed") != 0 {
		t.Fatalf("the submission ended as %+v after %d signatures", done, r.of("signed"))
	}
	if current, ok := done.Failure.Fields["current_root"].(string); !ok || len(current) != 64 {
		t.Errorf("the failure does not name the current root: %v", done.Failure.Fields)
	}
	in := done.Call.Inputs
	snap, err := w.state.Tree(t.Context(), 0)
	must(t, err)
	in.Root = snap.Tree.Root
	req.PublicInputs, req.Proof = in.Bytes(), w.prove(in)
	if again := w.done(w.submit(r, req).ID); again.ID == s.ID || again.State != submission.Completed {
		t.Errorf("proven again it ends as %+v", again)
	}
}

// depositQuietly appends two leaves without waiting for the confirmation.
func (w *world) depositQuietly() {
	w.t.Helper()
	w.deposit(10_000_000)
}

func TestAForeignSpendFailsWithTheNotesIndex(t *testing.T) {
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
		t.Errorf("the wait gives %+v, %v, want it pending", s, err)
	}
	w.run(r)
	if s, err := r.Wait(t.Context(), id); err != nil || s.State != submission.Completed {
		t.Errorf("the wait gives %+v, %v, want it completed", s, err)
	}
	r.Reader.Close()
	unknown, forget := context.WithTimeout(t.Context(), slot)
	defer forget()
	if _, err := r.Wait(unknown, uuid.New()); err == nil {
		t.Error("an unknown submission is waited for")
	}
}

// slowSends delays sends and remembers whether one was cancelled.
type slowSends struct {
	txmgr.Chain
	sending   chan struct{}
	cancelled atomic.Bool
}

func (s *slowSends) Send(ctx context.Context, raw []byte, preflight bool, minContextSlot uint64) error {
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
	return s.Chain.Send(ctx, raw, preflight, minContextSlot)
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
	heir := w.relay(nil)
	w.run(heir)
	if s := w.done(id); s.State != submission.Completed || heir.of("signed") != 0 {
		t.Errorf("the submission ended as %+v after %d new signatures", s, heir.of("signed"))
	}
}

// amnesia makes an endpoint forget every signature while it is on.
type amnesia struct {
	txmgr.Chain
	on atomic.Bool
}

func (a *amnesia) Statuses(ctx context.Context, sigs []solana.Signature) ([]*onchain.Status, uint64, error) {
	statuses, slot, err := a.Chain.Statuses(ctx, sigs)
	if a.on.Load() {
		clear(statuses)
	}
	return statuses, slot, err
}

func (a *amnesia) Search(ctx context.Context, sigs []solana.Signature) (onchain.SearchResult, error) {
	look, err := a.Chain.Search(ctx, sigs)
	if a.on.Load() {
		clear(look.Statuses)
	}
	return look, err
}

func TestAConfirmedSubmissionWhoseForkDiesIsProcessingAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fork := new(amnesia)
	r := w.relay(func(c txmgr.Chain) txmgr.Chain { fork.Chain = c; return fork })
	w.run(r)
	req, _ := w.withdrawal(sol)
	id := w.submit(r, req).ID
	if s := w.done(id); s.State != submission.Completed {
		t.Fatalf("the submission ended as %+v", s)
	}
	fork.on.Store(true)
	w.eventually("it is taken back", func() bool { s := w.get(id); return s.State == submission.Processing && s.RolledBack })
	w.eventually("its bytes are sent again", func() bool { return r.of("rebroadcast") > 0 })
	fork.on.Store(false)
	if s := w.done(id); s.State != submission.Completed || s.RolledBack || r.of("signed") != 1 {
		t.Errorf("the submission ended as %+v after %d signatures", s, r.of("signed"))
	}
}
