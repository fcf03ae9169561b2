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

// The five rules that keep anything from being lost or sent twice, each in the situation that needs
// it. Without the rule its test fails.

// newModelFleet is a model of two processes in which nothing goes wrong by itself.
func newModelFleet(t *testing.T, db *store.Store) (w *modelWorld, a, b *modelProcess) {
	t.Helper()
	rules := modelRules{life: 20, ring: 20, confirmAfter: 1, finalAfter: 5, recent: 100}
	w = newModelWorld(t, db, 1, rules, 2, 8, slog.New(slog.NewTextHandler(t.Output(), nil)))
	return w, w.processes[0], w.processes[1]
}

// takenBy has a process accept a new submission, and gives the model's record of it.
func (w *modelWorld) takenBy(p *modelProcess) *modelTaken {
	w.t.Helper()
	s, err := w.submit(p, w.call(0, 2))
	modelMust(w.t, err)
	return w.find(s.ID)
}

// inheritFrom ends a process, and has another claim its jobs.
func (w *modelWorld) inheritFrom(p, heir *modelProcess) {
	w.t.Helper()
	w.lapse(p)
	heir.engine.BeatOnce(w.t.Context())
	heir.engine.ReapOnce(w.t.Context())
	w.claim(heir)
}

// follow lets the chain go on, everything landing, and a process poll and write.
func (w *modelWorld) follow(p *modelProcess, slots int) {
	w.t.Helper()
	w.slots(slots, landAll)
	w.poll(p)
	p.engine.FlushOnce(w.t.Context())
}

// wantState fails the test unless the database has that state for a submission.
func (w *modelWorld) wantState(s *modelTaken, want submission.State) *submission.Submission {
	w.t.Helper()
	w.check()
	got, err := w.store.Get(w.t.Context(), s.id)
	modelMust(w.t, err)
	if got.State != want {
		w.fatal("%s is %s, want %s", w.short(s.id), got.State, want)
	}
	return got
}

// wantAttempts fails the test unless so many attempts were committed.
func (w *modelWorld) wantAttempts(s *modelTaken, want int) {
	w.t.Helper()
	w.check()
	if got := len(w.attemptsOf(s)); got != want {
		w.fatal("%s has %d attempts, want %d", w.short(s.id), got, want)
	}
}

func TestRuleWriteBeforeSend(t *testing.T) {
	t.Parallel()
	db := newModelStore(t)
	t.Run("a process that dies between commit and send leaves an attempt that its heir sends", func(t *testing.T) {
		w, a, b := newModelFleet(t, db)
		a.dieAt = "send before"
		s := w.takenBy(a)
		w.wantAttempts(s, 1)
		if n := len(w.chain.waiting()); n != 0 {
			t.Fatalf("%d transactions reached the chain before the send", n)
		}
		a.kill()
		w.inheritFrom(a, b)
		w.follow(b, 1) // to send it
		w.follow(b, 2)
		w.wantState(s, submission.Completed)
		w.wantAttempts(s, 1)
	})
	t.Run("an attempt that the database did not take is not sent", func(t *testing.T) {
		w, a, _ := newModelFleet(t, db)
		a.silent = "record"
		s := w.takenBy(a)
		w.wantAttempts(s, 0)
		if n := len(w.chain.waiting()); n != 0 {
			t.Fatalf("%d transactions reached the chain without a row", n)
		}
	})
}

func TestRuleDeath(t *testing.T) {
	t.Parallel()
	db := newModelStore(t)
	t.Run("nothing is signed anew while the blockhash lives on a fork that may become final", func(t *testing.T) {
		w, a, b := newModelFleet(t, db)
		s := w.takenBy(a)
		w.wantAttempts(s, 1)
		// Its last height has passed, but not finally: the block may still hold it.
		w.slots(int(w.chain.life+w.chain.finalAfter), landNone)
		w.poll(a)
		w.wantAttempts(s, 1)
		w.inheritFrom(a, b)
		w.wantAttempts(s, 1)
		w.follow(b, 3)
		w.wantAttempts(s, 2)
		w.follow(b, 3)
		w.wantState(s, submission.Completed)
	})
	t.Run("a landing that a fork undoes is sent again byte for byte, not signed anew", func(t *testing.T) {
		w, a, _ := newModelFleet(t, db)
		s := w.takenBy(a)
		w.follow(a, 2)
		w.wantState(s, submission.Completed)
		w.chain.fork(w.chain.finalAfter, func() bool { return false })
		for range 6 { // one poll may reach a lagging node
			w.slots(1, landNone)
			w.poll(a)
		}
		w.wantState(s, submission.Processing)
		w.claim(a)
		w.follow(a, 1) // to send it
		w.follow(a, 2)
		w.wantState(s, submission.Completed)
		w.wantAttempts(s, 1)
	})
	t.Run("a failure in a block that a fork undoes is no failure", func(t *testing.T) {
		w, a, b := newModelFleet(t, db)
		s := w.takenBy(a)
		// On this fork its root has left the root history before it lands.
		w.appendLeaves(w.chain.ring)
		w.follow(a, 2)
		w.inheritFrom(a, b) // which first looks the attempt up
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
		t.Run("a step that stood still at "+at+" cannot sign what its heir has signed", func(t *testing.T) {
			w, a, b := newModelFleet(t, db)
			a.stopAt = at
			s := w.takenBy(a)
			w.inheritFrom(a, b)
			w.wantAttempts(s, 1)
			a.goOn()
			w.wantAttempts(s, 1)
			w.follow(b, 2)
			w.wantState(s, submission.Completed)
		})
	}
	t.Run("an outcome of a lease that was lost is not written", func(t *testing.T) {
		w, a, b := newModelFleet(t, db)
		s := w.takenBy(a)
		w.slots(2, landAll)
		w.poll(a)
		w.inheritFrom(a, b)
		a.engine.FlushOnce(t.Context())
		w.wantState(s, submission.Processing)
		b.engine.FlushOnce(t.Context())
		w.wantState(s, submission.Completed)
	})
	t.Run("an outcome of an older lease is not written in the name of the present one", func(t *testing.T) {
		w, a, b := newModelFleet(t, db)
		for range 8 { // enough for either order of the two to come first
			w.takenBy(a)
		}
		w.lapse(a)
		b.engine.ReapOnce(t.Context())
		b.engine.BeatOnce(t.Context())
		w.claimAll(b)
		var batch []submission.Landing
		for i, s := range w.taken {
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
		if len(lost) != len(w.taken) {
			t.Errorf("%d leases were lost, want %d", len(lost), len(w.taken))
		}
		for _, s := range w.taken {
			if got := w.wantState(s, submission.Completed); got.Slot != 2 {
				t.Errorf("%s is completed with what was found under an older lease", w.short(s.id))
			}
		}
	})
	t.Run("a watch that was lost ends nothing and takes nothing back", func(t *testing.T) {
		w, a, b := newModelFleet(t, db)
		final, undone := w.takenBy(a), w.takenBy(a)
		w.slots(1, func(tx *modelTx) bool { return submission.ContentHash(tx.call) == final.hash })
		w.slots(int(w.chain.finalAfter), landAll)
		w.poll(a)
		a.engine.FlushOnce(t.Context())
		w.wantState(final, submission.Completed)
		w.wantState(undone, submission.Completed)
		w.lapse(a)
		b.engine.ReapOnce(t.Context())
		b.engine.ClaimLandedOnce(t.Context())
		w.chain.fork(w.chain.finalAfter, func() bool { return false })
		for range 6 { // one poll may reach a lagging node
			w.slots(1, landNone)
			w.poll(a)
		}
		a.engine.FlushOnce(t.Context())
		if w.wantState(final, submission.Completed).Finalized {
			t.Error("a process that watches no more has ended the watch")
		}
		w.wantState(undone, submission.Completed)
	})
	t.Run("a step that went on too late puts nothing off", func(t *testing.T) {
		w, a, b := newModelFleet(t, db)
		a.silent, a.stopAt = "simulate", "release before"
		s := w.takenBy(a)
		w.inheritFrom(a, b)
		a.goOn()
		if got := w.wantState(s, submission.Processing); got.Tries != 0 {
			t.Errorf("the submission counts %d tries, which its worker has not made", got.Tries)
		}
		w.follow(b, 2)
		w.wantState(s, submission.Completed)
	})
	for _, at := range []string{"bury before", "fail before"} {
		t.Run("a step that stood still at "+at+" ends nothing", func(t *testing.T) {
			w, a, b := newModelFleet(t, db)
			s := w.takenBy(b)
			w.slots(int(w.chain.life+w.chain.finalAfter), landNone)
			w.appendLeaves(w.chain.ring)
			w.slots(2, landNone)
			a.stopAt = at
			w.inheritFrom(b, a)
			b.stopAt = at
			w.inheritFrom(a, b)
			if a.standing() == nil || b.standing() == nil {
				w.fatal("not both stand still")
			}
			a.goOn()
			w.wantState(s, submission.Processing)
			b.goOn()
			w.wantState(s, submission.Failed)
		})
	}
}

func TestRuleUniqueIndex(t *testing.T) {
	t.Parallel()
	db := newModelStore(t)
	t.Run("two processes that both found the note free do not both take it", func(t *testing.T) {
		w, a, b := newModelFleet(t, db)
		one, two := w.call(0, 2), w.call(0, 2)
		two.Inputs.Nullifiers[1] = one.Inputs.Nullifiers[0]
		first, _, err := a.admission.Check(t.Context(), one, groth16.Plain, nil)
		modelMust(t, err)
		second, _, err := b.admission.Check(t.Context(), two, groth16.Plain, nil)
		modelMust(t, err)
		_, err = a.admission.Accept(w.step(), first, nil)
		modelMust(t, err)
		_, err = b.admission.Accept(w.step(), second, nil)
		w.wantRefusal(err, refusal.NullifierReserved)
		a.settle()
		w.check()
	})
	t.Run("of many at the same moment one is taken", func(t *testing.T) {
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
		var at sync.WaitGroup
		for i, c := range calls {
			s := &submission.Submission{ID: uuid.New(), Pool: w.pool.Address, Kind: c.Kind(), State: submission.Pending, Call: c, ProofAEncoding: "plain"}
			at.Go(func() {
				if _, errs[i] = w.store.Accept(t.Context(), s, nil, nil); errs[i] == nil {
					w.accepted(w.processes[0], modelSender{}, s)
				}
			})
		}
		at.Wait()
		for _, err := range errs {
			if err != nil {
				w.wantRefusal(err, refusal.NullifierReserved)
			}
		}
		w.check()
		if len(w.taken) != 1 {
			t.Errorf("%d submissions of one note were taken, want 1", len(w.taken))
		}
	})
}

func TestRuleNullifierAccount(t *testing.T) {
	t.Parallel()
	db := newModelStore(t)
	t.Run("a landing of which the database knows nothing completes its submission", func(t *testing.T) {
		w, a, b := newModelFleet(t, db)
		s := w.takenBy(a)
		sig := w.chain.waiting()[0].signature
		w.loseAttempts(s)
		a.kill()
		w.slots(2, landAll)
		w.inheritFrom(a, b)
		b.engine.FlushOnce(t.Context())
		if got := w.wantState(s, submission.Completed); *got.Signature != sig {
			t.Errorf("completed with %s, want %s, which landed", got.Signature, sig)
		}
		w.wantAttempts(s, 1)
	})
	t.Run("a landing that the endpoint denies completes its submission", func(t *testing.T) {
		w, a, b := newModelFleet(t, db)
		s := w.takenBy(a)
		w.slots(1, landAll)
		w.slots(int(w.chain.life+w.chain.finalAfter), landNone)
		b.denies = true
		w.inheritFrom(a, b)
		b.engine.FlushOnce(t.Context())
		w.wantState(s, submission.Completed)
		w.wantAttempts(s, 1)
	})
	t.Run("notes that somebody else has spent fail it, once that is final", func(t *testing.T) {
		w, a, b := newModelFleet(t, db)
		s := w.takenBy(a)
		w.chain.produce(0, []*modelTx{w.foreign(s.call)}) // exactly the same content, paid by another
		w.slots(int(w.chain.life+w.chain.finalAfter)+1, landNone)
		w.inheritFrom(a, b)
		got := w.wantState(s, submission.Failed)
		if got.Failure.Code != refusal.NullifierSpent {
			t.Errorf("failed with %s, want %s", got.Failure.Code, refusal.NullifierSpent)
		}
	})
	t.Run("notes that a fork may give back fail nothing", func(t *testing.T) {
		w, a, b := newModelFleet(t, db)
		a.dieAt = "simulate before" // before anything was signed
		s := w.takenBy(a)
		w.chain.produce(0, []*modelTx{w.foreign(s.call)})
		w.slots(2, landNone)
		w.inheritFrom(a, b)
		w.wantState(s, submission.Processing)
		w.chain.fork(w.chain.finalAfter, func() bool { return false })
		w.slots(2, landNone)
		w.claim(b)
		w.follow(b, 2)
		w.wantState(s, submission.Completed)
	})
}
