package txmgr_test

import (
	"log/slog"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/internal/store"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// The five rules that prevent lost and repeated payments, each tested in a situation that needs the
// rule. Without the rule its test fails.

// newModelFleet makes a model of two processes without random faults.
func newModelFleet(t *testing.T, db *store.Store) (w *modelWorld, a, b *modelProcess) {
	t.Helper()
	rules := modelRules{blockhashLife: 20, rootHistory: 20, confirmAfter: 1, finalAfter: 5, statusSlots: 100}
	w = newModelWorld(t, db, 1, rules, 2, 8, slog.New(slog.NewTextHandler(t.Output(), nil)))
	return w, w.processes[0], w.processes[1]
}

// acceptNew makes a process accept a new submission, and returns the model's record of it.
func (w *modelWorld) acceptNew(p *modelProcess) *modelSubmission {
	w.t.Helper()
	s, err := w.submit(p, w.call(0, 2))
	modelMust(w.t, err)
	return w.find(s.ID)
}

// takeOverFrom lets the leases of a process lapse, and makes another process claim one of its jobs.
func (w *modelWorld) takeOverFrom(p, newOwner *modelProcess) {
	w.t.Helper()
	w.lapse(p)
	newOwner.manager.HeartbeatOnce(w.t.Context())
	newOwner.manager.FreeDeadProcessesOnce(w.t.Context())
	w.claim(newOwner)
}

// follow produces slots in which all transactions land; then the process polls and writes outcomes.
func (w *modelWorld) follow(p *modelProcess, slots int) {
	w.t.Helper()
	w.slots(slots, landAll)
	w.poll(p)
	p.manager.FlushOnce(w.t.Context())
}

// wantState fails the test unless the submission has that state in the database.
func (w *modelWorld) wantState(s *modelSubmission, want submission.State) *submission.Submission {
	w.t.Helper()
	w.check()
	got, err := w.store.Get(w.t.Context(), s.id)
	modelMust(w.t, err)
	if got.State != want {
		w.fatal("%s is %s, want %s", w.shortID(s.id), got.State, want)
	}
	return got
}

// wantAttempts fails the test unless that many attempts of the submission were committed.
func (w *modelWorld) wantAttempts(s *modelSubmission, want int) {
	w.t.Helper()
	w.check()
	if got := len(w.attemptsOf(s)); got != want {
		w.fatal("%s has %d attempts, want %d", w.shortID(s.id), got, want)
	}
}

func TestRuleWriteBeforeSend(t *testing.T) {
	t.Parallel()
	db := newModelStore(t)
	t.Run("an attempt whose process dies between commit and send is sent by the new owner", func(t *testing.T) {
		w, a, b := newModelFleet(t, db)
		a.dieAt = "send before"
		s := w.acceptNew(a)
		w.wantAttempts(s, 1)
		if n := len(w.chain.pendingTxs()); n != 0 {
			t.Fatalf("%d transactions reached the chain before the send", n)
		}
		a.kill()
		w.takeOverFrom(a, b)
		w.follow(b, 1) // sends the attempt
		w.follow(b, 2)
		w.wantState(s, submission.Completed)
		w.wantAttempts(s, 1)
	})
	t.Run("an attempt that the database did not record is not sent", func(t *testing.T) {
		w, a, _ := newModelFleet(t, db)
		a.unanswered = "record"
		s := w.acceptNew(a)
		w.wantAttempts(s, 0)
		if n := len(w.chain.pendingTxs()); n != 0 {
			t.Fatalf("%d transactions reached the chain without a row", n)
		}
	})
}

func TestRuleDeath(t *testing.T) {
	t.Parallel()
	db := newModelStore(t)
	t.Run("nothing is signed anew while a fork that may become final accepts the blockhash", func(t *testing.T) {
		w, a, b := newModelFleet(t, db)
		s := w.acceptNew(a)
		w.wantAttempts(s, 1)
		// The tip has passed the attempt's last valid height, but the finalized block has not.
		w.slots(int(w.chain.blockhashLife+w.chain.finalAfter), landNone)
		w.poll(a)
		w.wantAttempts(s, 1)
		w.takeOverFrom(a, b)
		w.wantAttempts(s, 1)
		w.follow(b, 3)
		w.wantAttempts(s, 2)
		w.follow(b, 3)
		w.wantState(s, submission.Completed)
	})
	t.Run("an attempt rolled back by a fork is rebroadcast, not signed anew", func(t *testing.T) {
		w, a, _ := newModelFleet(t, db)
		s := w.acceptNew(a)
		w.follow(a, 2)
		w.wantState(s, submission.Completed)
		w.chain.fork(w.chain.finalAfter, func() bool { return false })
		for range 6 { // one poll may reach a lagging node
			w.slots(1, landNone)
			w.poll(a)
		}
		w.wantState(s, submission.Processing)
		w.claim(a)
		w.follow(a, 1) // sends the attempt
		w.follow(a, 2)
		w.wantState(s, submission.Completed)
		w.wantAttempts(s, 1)
	})
	t.Run("a failure in a block that a fork removes does not fail the submission", func(t *testing.T) {
		w, a, b := newModelFleet(t, db)
		s := w.acceptNew(a)
		// On this fork the root leaves the root history before the attempt lands.
		w.appendLeaves(w.chain.rootHistory)
		w.follow(a, 2)
		w.takeOverFrom(a, b) // b first resolves the attempt
		w.wantState(s, submission.Processing)
		w.chain.fork(w.chain.finalAfter, func() bool { return true })
		w.follow(b, 3)
		w.wantState(s, submission.Completed)
		w.wantAttempts(s, 1)
	})
}

func TestRuleEpoch(t *testing.T) {
	t.Parallel()
	db := newModelStore(t)
	for _, at := range []string{"simulate after", "blockhash after", "record before"} {
		t.Run("a step that paused at "+at+" signs nothing after the new owner has signed", func(t *testing.T) {
			w, a, b := newModelFleet(t, db)
			a.stopAt = at
			s := w.acceptNew(a)
			w.takeOverFrom(a, b)
			w.wantAttempts(s, 1)
			a.resume()
			w.wantAttempts(s, 1)
			w.follow(b, 2)
			w.wantState(s, submission.Completed)
		})
	}
	t.Run("an outcome is not written under a lost lease", func(t *testing.T) {
		w, a, b := newModelFleet(t, db)
		s := w.acceptNew(a)
		w.slots(2, landAll)
		w.poll(a)
		w.takeOverFrom(a, b)
		a.manager.FlushOnce(t.Context())
		w.wantState(s, submission.Processing)
		b.manager.FlushOnce(t.Context())
		w.wantState(s, submission.Completed)
	})
	t.Run("an outcome of an older lease in the same batch is not written", func(t *testing.T) {
		w, a, b := newModelFleet(t, db)
		for range 8 { // in half of the pairs the stale outcome is first
			w.acceptNew(a)
		}
		w.lapse(a)
		b.manager.FreeDeadProcessesOnce(t.Context())
		b.manager.HeartbeatOnce(t.Context())
		w.claimAll(b)
		var batch []submission.Landing
		for i, s := range w.submissions {
			row := w.row(s.id)
			present := txmgr.Lease{ID: s.id, Epoch: row.Epoch, Owner: row.Owner}
			stale := submission.Landing{Lease: txmgr.Lease{ID: s.id, Epoch: 1, Owner: a.worker}, Outcome: submission.Outcome{Signature: [64]byte{1}, Slot: 1}}
			landed := submission.Landing{Lease: present, Outcome: submission.Outcome{Signature: w.attemptsOf(s)[0].signature, Slot: 2}}
			if i%2 == 0 {
				batch = append(batch, stale, landed)
			} else {
				batch = append(batch, landed, stale)
			}
		}
		lost, err := w.store.Complete(t.Context(), batch)
		modelMust(t, err)
		if len(lost) != len(w.submissions) {
			t.Errorf("%d leases were lost, want %d", len(lost), len(w.submissions))
		}
		for _, s := range w.submissions {
			if got := w.wantState(s, submission.Completed); got.Slot != 2 {
				t.Errorf("%s is completed in slot %d by the outcome of an older lease, want slot 2", w.shortID(s.id), got.Slot)
			}
		}
	})
	t.Run("a process that lost its landed jobs neither finalizes nor reopens them", func(t *testing.T) {
		w, a, b := newModelFleet(t, db)
		final, undone := w.acceptNew(a), w.acceptNew(a)
		w.slots(1, func(tx *modelTx) bool { return submission.ContentHash(tx.call) == final.hash })
		w.slots(int(w.chain.finalAfter), landAll)
		w.poll(a)
		a.manager.FlushOnce(t.Context())
		w.wantState(final, submission.Completed)
		w.wantState(undone, submission.Completed)
		w.lapse(a)
		b.manager.FreeDeadProcessesOnce(t.Context())
		b.manager.ClaimLandedOnce(t.Context())
		w.chain.fork(w.chain.finalAfter, func() bool { return false })
		for range 6 { // one poll may reach a lagging node
			w.slots(1, landNone)
			w.poll(a)
		}
		a.manager.FlushOnce(t.Context())
		if w.wantState(final, submission.Completed).Finalized {
			t.Error("a process finalized a submission whose lease it had lost")
		}
		w.wantState(undone, submission.Completed)
	})
	t.Run("a step that resumes after its lease was lost defers nothing", func(t *testing.T) {
		w, a, b := newModelFleet(t, db)
		a.unanswered, a.stopAt = "simulate", "release before"
		s := w.acceptNew(a)
		w.takeOverFrom(a, b)
		a.resume()
		if got := w.wantState(s, submission.Processing); got.Tries != 0 {
			t.Errorf("the submission counts %d tries, want 0 for its new owner", got.Tries)
		}
		w.follow(b, 2)
		w.wantState(s, submission.Completed)
	})
	for _, at := range []string{"markDead before", "fail before"} {
		t.Run("a step that paused at "+at+" and lost its lease fails nothing", func(t *testing.T) {
			w, a, b := newModelFleet(t, db)
			s := w.acceptNew(b)
			w.slots(int(w.chain.blockhashLife+w.chain.finalAfter), landNone)
			w.appendLeaves(w.chain.rootHistory)
			w.slots(2, landNone)
			a.stopAt = at
			w.takeOverFrom(b, a)
			b.stopAt = at
			w.takeOverFrom(a, b)
			if a.pausedStep() == nil || b.pausedStep() == nil {
				w.fatal("the two steps are not both paused")
			}
			a.resume()
			w.wantState(s, submission.Processing)
			b.resume()
			w.wantState(s, submission.Failed)
		})
	}
}

func TestRuleUniqueIndex(t *testing.T) {
	t.Parallel()
	db := newModelStore(t)
	t.Run("of two processes that both found a note unreserved, one accepts it", func(t *testing.T) {
		w, a, b := newModelFleet(t, db)
		one, two := w.call(0, 2), w.call(0, 2)
		two.Inputs.Nullifiers[1] = one.Inputs.Nullifiers[0]
		first, _, err := a.admission.Check(t.Context(), one, groth16.Plain, nil)
		modelMust(t, err)
		second, _, err := b.admission.Check(t.Context(), two, groth16.Plain, nil)
		modelMust(t, err)
		_, err = first.Accept(w.stepContext())
		modelMust(t, err)
		_, err = second.Accept(w.stepContext())
		w.wantRefusal(err, refusal.NullifierReserved)
		a.waitIdle()
		w.check()
	})
	t.Run("of many concurrent requests with one note, one is accepted", func(t *testing.T) {
		const many = 16
		w, _, _ := newModelFleet(t, db)
		note := w.element(3)
		var calls []*shieldpool.Call
		for i := range many {
			c := w.call(0, 2)
			c.Inputs.Nullifiers[i%2] = note
			calls = append(calls, c)
		}
		errs := make([]error, many)
		var accepts sync.WaitGroup
		for i, c := range calls {
			s := &submission.Submission{ID: uuid.New(), Pool: w.pool.Address, Kind: c.Kind(), State: submission.Pending, Call: c, ProofAEncoding: "plain"}
			accepts.Go(func() {
				if _, errs[i] = w.store.Accept(t.Context(), s, nil, nil); errs[i] == nil {
					w.recordAccepted(w.processes[0], modelSender{}, s)
				}
			})
		}
		accepts.Wait()
		for _, err := range errs {
			if err != nil {
				w.wantRefusal(err, refusal.NullifierReserved)
			}
		}
		w.check()
		if len(w.submissions) != 1 {
			t.Errorf("%d submissions with the same note were accepted, want 1", len(w.submissions))
		}
	})
}

func TestRuleNullifierAccount(t *testing.T) {
	t.Parallel()
	db := newModelStore(t)
	t.Run("a landing whose attempt the database lost completes the submission", func(t *testing.T) {
		w, a, b := newModelFleet(t, db)
		s := w.acceptNew(a)
		sig := w.chain.pendingTxs()[0].signature
		w.loseAttempts(s)
		a.kill()
		w.slots(2, landAll)
		w.takeOverFrom(a, b)
		b.manager.FlushOnce(t.Context())
		if got := w.wantState(s, submission.Completed); *got.Signature != sig {
			t.Errorf("the submission is completed with %s, want %s, which landed", got.Signature, sig)
		}
		w.wantAttempts(s, 1)
	})
	t.Run("a landing whose signature no endpoint reports completes the submission", func(t *testing.T) {
		w, a, b := newModelFleet(t, db)
		s := w.acceptNew(a)
		w.slots(1, landAll)
		w.slots(int(w.chain.blockhashLife+w.chain.finalAfter), landNone)
		b.noSignatures = true
		w.takeOverFrom(a, b)
		b.manager.FlushOnce(t.Context())
		w.wantState(s, submission.Completed)
		w.wantAttempts(s, 1)
	})
	t.Run("notes spent by another finalized transaction fail the submission", func(t *testing.T) {
		w, a, b := newModelFleet(t, db)
		s := w.acceptNew(a)
		w.chain.produce(0, []*modelTx{w.foreign(s.call)}) // exactly the same content, paid by another
		w.slots(int(w.chain.blockhashLife+w.chain.finalAfter)+1, landNone)
		w.takeOverFrom(a, b)
		got := w.wantState(s, submission.Failed)
		if got.Failure.Code != refusal.NullifierSpent {
			t.Errorf("the submission failed with %s, want %s", got.Failure.Code, refusal.NullifierSpent)
		}
	})
	t.Run("notes spent in a block that is not final do not fail the submission", func(t *testing.T) {
		w, a, b := newModelFleet(t, db)
		a.dieAt = "blockhash before" // before anything was signed
		s := w.acceptNew(a)
		w.chain.produce(0, []*modelTx{w.foreign(s.call)})
		w.slots(2, landNone)
		w.takeOverFrom(a, b)
		w.wantState(s, submission.Processing)
		w.chain.fork(w.chain.finalAfter, func() bool { return false })
		w.slots(2, landNone)
		w.claim(b)
		w.follow(b, 2)
		w.wantState(s, submission.Completed)
	})
}
