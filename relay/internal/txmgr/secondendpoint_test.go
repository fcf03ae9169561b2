package txmgr_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
)

// listen makes endpoints of the chain with the given names, in their order.
func (w *world) listen(names ...string) (all []chain.Endpoint) {
	w.t.Helper()
	for _, name := range names {
		url, err := w.chain.ListenEndpoint(name, "127.0.0.1:0")
		must(w.t, err)
		all = append(all, chain.Endpoint{Name: name, URL: url, WebSocketURL: chain.NoWebSocket, Roles: []chain.Role{chain.RoleRead, chain.RoleSubmit, chain.RoleArchive}})
	}
	return all
}

// awaitEndpoints makes a client of endpoints with the given names, in their order, and waits until each has reported a slot.
func (w *world) awaitEndpoints(names ...string) *chain.Endpoints {
	w.t.Helper()
	e := w.endpoints(w.listen(names...)...)
	go e.Run(w.t.Context())
	w.eventually("each endpoint has reported a slot", func() bool {
		for _, s := range e.Status() {
			if s.SlotAt.IsZero() {
				return false
			}
		}
		return true
	})
	return e
}

// relayThrough makes a relay that reads and sends through the endpoints.
func (w *world) relayThrough(e *chain.Endpoints) *relay {
	w.t.Helper()
	return w.assemble(parts{state: w.newState(e), chain: func(txmgr.Chain) txmgr.Chain { return e }})
}

func (w *world) faults(name string, rules ...fault.Rule) {
	w.t.Helper()
	must(w.t, w.chain.Endpoint(name).SetFaults(rules))
}

// countBusy returns how many submissions count towards a busy pool.
func (w *world) countBusy() (n int) {
	w.t.Helper()
	q, err := w.store.QueueByRoot(w.t.Context(), w.pool.Address, 0)
	must(w.t, err)
	for _, r := range q.Waiting {
		n += r.Submissions
	}
	return n + q.InFlight
}

func (w *world) heldBy(reason string) int64 {
	w.t.Helper()
	b, err := w.store.Backlog(w.t.Context())
	must(w.t, err)
	return b.Held[reason]
}

// lies make an endpoint report every signature as final, and drop every transaction.
var lies = []fault.Rule{
	{Method: "getSignatureStatuses", Outcome: fault.OutcomeSucceeds},
	{Method: "sendTransaction", Drop: true},
}

// TestOneEndpointAloneCompletesNothing: a transaction that only one endpoint reports as final is
// rebroadcast, uses no capacity, does not keep the pool busy, and completes when it has really landed.
func TestOneEndpointAloneCompletesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.awaitEndpoints("liar", "honest")
	w.faults("liar", lies...)
	w.faults("honest", fault.Rule{Method: "sendTransaction", Drop: true})
	r := w.relayThrough(e)
	w.run(r)
	req, to := w.withdrawal(sol)
	id := w.submit(r, req).ID
	w.eventually("the attempt is rebroadcast", func() bool { return r.count("rebroadcast") > 3 })
	if s := w.get(id); s.Done() || w.balance(to) > 0 {
		t.Fatalf("after the report of one endpoint the submission is %+v and the recipient holds %d lamports; want it unfinished and 0", s, w.balance(to))
	}
	w.clock.advance(3 * time.Second)
	w.eventually("the submission waits for a second endpoint", func() bool { return w.heldBy(txmgr.HoldSecondEndpoint) == 1 })
	// A claim uses capacity while the database answers.
	w.eventually("its capacity is released", func() bool { n, _ := r.InProgress(); return n == 0 })
	if w.countBusy() != 0 {
		t.Errorf("%d submissions keep the pool busy, want none", w.countBusy())
	}
	before := r.count("rebroadcast")
	w.eventually("the attempt is still rebroadcast", func() bool { w.clock.advance(time.Second); return r.count("rebroadcast") > before+2 })
	if s := w.get(id); s.Done() || s.Finalized {
		t.Fatalf("after the report of one endpoint the submission is %+v, want it unfinished", s)
	}
	if pin := w.pin(); pin != "" {
		t.Errorf("the encoding %s of A is pinned by the report of one endpoint, want none", pin)
	}
	if s := e.Status(); s[0].Contradictions == 0 {
		t.Errorf("no contradiction is counted: %+v", s)
	}
	w.faults("liar")
	w.faults("honest")
	w.eventually("the submission is finalized", func() bool { w.clock.advance(time.Second); return w.get(id).Finalized })
	if w.balance(to) == 0 || w.heldBy(txmgr.HoldSecondEndpoint) != 0 {
		t.Errorf("the recipient holds %d lamports and %d submissions are held; want more than 0, and none held", w.balance(to), w.heldBy(txmgr.HoldSecondEndpoint))
	}
}

// pin returns the pinned encoding of A; "" before a landing is finalized.
func (w *world) pin() string {
	w.t.Helper()
	encoding, err := w.store.PinnedProofA(w.t.Context(), w.key.Hash())
	must(w.t, err)
	return encoding
}

// TestFinalityNeedsTwoEndpoints: a fork may still roll back a landing that only one endpoint reports
// as final, so that landing pins no encoding of A.
func TestFinalityNeedsTwoEndpoints(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, slot, func(o *localnet.Options) { o.FinalizeAfter = 100_000 }) // half an hour
	e := w.awaitEndpoints("liar", "honest")
	w.faults("liar", lies[0])
	r := w.relayThrough(e)
	w.run(r)
	req, _ := w.withdrawal(sol)
	id := w.submit(r, req).ID
	if s := w.done(id); s.State != submission.Completed {
		t.Fatalf("the submission ended as %+v, failure %v; want it completed", s, s.Failure)
	}
	asked := func() uint64 { return w.chain.Stats()["getSignatureStatuses"] }
	before := asked()
	w.eventually("its status is polled 20 times", func() bool { w.clock.advance(time.Second); return asked() > before+20 || w.get(id).Finalized })
	if s, pin := w.get(id), w.pin(); s.State != submission.Completed || s.Finalized || pin != "" {
		t.Errorf("the submission is %+v and the pinned encoding is %q; want it completed, not final, and no pin", s, pin)
	}
}

// TestOutcomesWaitForASecondEndpointAndNewWorkDoesNot: one of two endpoints does not answer.
func TestOutcomesWaitForASecondEndpointAndNewWorkDoesNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.awaitEndpoints("one", "two")
	r := w.assemble(parts{state: w.newState(e), chain: func(txmgr.Chain) txmgr.Chain { return e }, concurrency: 1})
	w.run(r)
	w.faults("two", fault.Rule{Cut: true})
	var ids []uuid.UUID
	for n := range 3 {
		req, to := w.withdrawal(sol)
		ids = append(ids, w.submit(r, req).ID)
		w.eventually("the recipient is paid", func() bool { return w.balance(to) > 0 })
		w.eventually("the submission is held, and its capacity is released", func() bool {
			w.clock.advance(time.Second)
			inFlight, _ := r.InProgress()
			return w.heldBy(txmgr.HoldSecondEndpoint) == int64(n+1) && inFlight == 0
		})
	}
	if n := w.countBusy(); n != 0 {
		t.Errorf("%d submissions keep the pool busy, want none", n)
	}
	for _, id := range ids {
		if w.get(id).Done() {
			t.Error("a submission is done after the report of one endpoint")
		}
	}
	w.faults("two")
	for _, id := range ids {
		w.eventually("the submission is finalized", func() bool { return w.get(id).Finalized })
		if s := w.get(id); s.State != submission.Completed {
			t.Errorf("the submission ended as %+v, want it completed", s)
		}
	}
	if r.count("signed") != 3 {
		t.Errorf("%d transactions were signed for 3 submissions, want 3", r.count("signed"))
	}
}

// TestFalseSimulationFailsNoSubmission: one endpoint reports that simulations fail. The other one answers
// for the first submission, and does not simulate for the second.
func TestFalseSimulationFailsNoSubmission(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.awaitEndpoints("liar", "honest")
	failing := fault.Rule{Method: "simulateTransaction", Outcome: fault.OutcomeFails, Err: `{"InstructionError":[2,{"Custom":4208}]}`}
	w.faults("liar", failing)
	r := w.relayThrough(e)
	w.run(r)
	req, _ := w.withdrawal(sol)
	if s := w.done(w.submit(r, req).ID); s.State != submission.Completed {
		t.Errorf("the submission ended as %+v, failure %v, after one endpoint's simulation; want it completed", s, s.Failure)
	}
	w.faults("honest", fault.Rule{Method: "simulateTransaction", Status: 503})
	req, _ = w.withdrawal(sol)
	id := w.submit(r, req).ID
	w.eventually("the submission waits for the other endpoint", func() bool { return w.heldBy(txmgr.HoldSecondEndpoint) == 1 })
	if s := w.get(id); s.Done() || w.countBusy() != 0 {
		t.Errorf("the submission is %+v, failure %v, and %d submissions keep the pool busy; want it unfinished, and none", s, s.Failure, w.countBusy())
	}
	w.faults("honest")
	if s := w.done(id); s.State != submission.Completed {
		t.Errorf("the submission ended as %+v, failure %v, after one endpoint's simulation; want it completed", s, s.Failure)
	}
}

// TestFalseFailureStatusFailsNoSubmission: a transaction that one endpoint reports as finally failed still lands.
func TestFalseFailureStatusFailsNoSubmission(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.awaitEndpoints("liar", "honest")
	w.faults("liar", fault.Rule{Method: "getSignatureStatuses", Outcome: fault.OutcomeFails, Err: `{"InstructionError":[2,{"Custom":4208}]}`})
	r := w.relayThrough(e)
	w.run(r)
	req, to := w.withdrawal(sol)
	id := w.submit(r, req).ID
	w.eventually("the recipient is paid", func() bool { return w.balance(to) > 0 })
	w.clock.advance(3 * time.Second)
	w.eventually("the submission waits until the endpoints agree", func() bool { return w.heldBy(txmgr.HoldSecondEndpoint) == 1 })
	w.faults("liar")
	if s := w.done(id); s.State != submission.Completed || r.count("signed") != 1 {
		t.Errorf("the submission ended as %+v, failure %v, after %d signatures", s, s.Failure, r.count("signed"))
	}
}

// TestFalseSlotsDoNotStopSigning: the endpoint that is asked first claims to be far ahead of the
// chain, or answers with old state as if it were current.
func TestFalseSlotsDoNotStopSigning(t *testing.T) {
	if testing.Short() {
		t.Skip("the test waits for hundreds of slots")
	}
	t.Parallel()
	behind, ahead, past := []fault.Rule{{Lag: 15}}, []fault.Rule{{Ahead: 1000}}, []fault.Rule{{Lag: 140, Ahead: 140}}
	tests := map[string]struct {
		honest, first, later []fault.Rule // the rules of the honest endpoint and of the liar
	}{
		"ahead, once the relay runs":                                   {later: ahead},
		"ahead from the relay's start, while the honest endpoint lags": {honest: behind, first: ahead, later: ahead},
		"old state reported as current, once the relay runs":           {later: past},
		"old state reported as current, from the relay's start":        {first: past, later: past},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			all := w.listen("liar", "honest")
			w.faults("honest", test.honest...)
			w.faults("liar", test.first...)
			e := w.endpoints(all...)
			go e.Run(t.Context())
			r := w.relayThrough(e)
			w.run(r)
			w.faults("liar", test.later...)
			for range 3 {
				w.deposit(10_000_000) // the old state does not have the new root
				req, _ := w.withdrawal(sol)
				id := w.submit(r, req).ID
				w.eventually("the submission is finalized", func() bool { return w.get(id).Finalized })
				if s := w.get(id); s.State != submission.Completed {
					t.Errorf("the submission ended as %+v, failure %v; want it completed", s, s.Failure)
				}
			}
		})
	}
}

// TestAProcessedTransactionIsSentAgain: an endpoint accepts the transaction, drops it, and reports it
// as processed from then on.
func TestAProcessedTransactionIsSentAgain(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, 200*time.Millisecond) // slots so long that the transaction does not expire
	r := w.relay(func(c txmgr.Chain) txmgr.Chain {
		processed := &alteredChain{Chain: c, statuses: func(_ bool, all []*onchain.Status) {
			for i, s := range all {
				if s == nil {
					all[i] = &onchain.Status{Slot: 1, Confirmation: onchain.Processed}
				}
			}
		}}
		return &lossyChain{Chain: processed, fate: func(n int64) (bool, bool) { return n > 1, true }}
	})
	w.run(r)
	req, _ := w.withdrawal(sol)
	if s := w.done(w.submit(r, req).ID); s.State != submission.Completed || r.count("signed") != 1 {
		t.Errorf("the submission ended as %+v, after %d signatures; want it completed after 1", s, r.count("signed"))
	}
}
