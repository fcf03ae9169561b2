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

// listen makes endpoints of the chain by those names, in their order.
func (w *world) listen(names ...string) (all []chain.Endpoint) {
	w.t.Helper()
	for _, name := range names {
		url, err := w.chain.ListenEndpoint(name, "127.0.0.1:0")
		must(w.t, err)
		all = append(all, chain.Endpoint{Name: name, URL: url, WebSocketURL: chain.NoWebSocket, Roles: []chain.Role{chain.RoleRead, chain.RoleSubmit, chain.RoleArchive}})
	}
	return all
}

// awaitEndpoints is a client of endpoints of the chain by those names, in their order, once each has reported a slot.
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

// relayThrough is a relay that reaches the chain through the endpoints.
func (w *world) relayThrough(e *chain.Endpoints) *relay {
	w.t.Helper()
	return w.assemble(parts{state: w.newState(e), chain: func(txmgr.Chain) txmgr.Chain { return e }})
}

func (w *world) faults(name string, rules ...fault.Rule) {
	w.t.Helper()
	must(w.t, w.chain.Endpoint(name).SetFaults(rules))
}

// countBusy is how many submissions keep the pool busy.
func (w *world) countBusy() int {
	w.t.Helper()
	n, err := w.store.CountAhead(w.t.Context(), w.pool.Address, 0, 1<<62, 100)
	must(w.t, err)
	return n
}

func (w *world) heldBy(reason string) int64 {
	w.t.Helper()
	b, err := w.store.Backlog(w.t.Context())
	must(w.t, err)
	return b.Held[reason]
}

// lies report every signature as final, regardless of the transaction's fate.
var lies = []fault.Rule{
	{Method: "getSignatureStatuses", Outcome: fault.OutcomeSucceeds},
	{Method: "sendTransaction", Drop: true},
}

// TestOneLiarOfTwoCompletesNothing: a transaction that one endpoint reports as final is sent again
// and again, keeps neither a place nor the pool busy, and ends when it has truly landed.
func TestOneLiarOfTwoCompletesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.awaitEndpoints("liar", "honest")
	w.faults("liar", lies...)
	w.faults("honest", fault.Rule{Method: "sendTransaction", Drop: true})
	r := w.relayThrough(e)
	w.run(r)
	req, to := w.withdrawal(sol)
	id := w.submit(r, req).ID
	w.eventually("it is sent again", func() bool { return r.of("rebroadcast") > 3 })
	if s := w.get(id); s.Done() || w.balance(to) > 0 {
		t.Fatalf("the submission is %+v on the word of one endpoint, and the recipient holds %d", s, w.balance(to))
	}
	w.clock.advance(3 * time.Second)
	w.eventually("it waits for a second endpoint", func() bool { return w.heldBy(txmgr.HoldSecondEndpoint) == 1 })
	// A claim takes places while the database answers.
	w.eventually("its place is free", func() bool { n, _ := r.InProgress(); return n == 0 })
	if w.countBusy() != 0 {
		t.Errorf("%d submissions keep the pool busy, want none", w.countBusy())
	}
	before := r.of("rebroadcast")
	w.eventually("it is still sent", func() bool { w.clock.advance(time.Second); return r.of("rebroadcast") > before+2 })
	if s := w.get(id); s.Done() || s.Finalized {
		t.Fatalf("the submission is %+v on the word of one endpoint", s)
	}
	if pin := w.pin(); pin != "" {
		t.Errorf("proof A is pinned as %s on the word of one endpoint", pin)
	}
	if s := e.Status(); s[0].Contradictions == 0 {
		t.Errorf("no contradiction is counted: %+v", s)
	}
	w.faults("liar")
	w.faults("honest")
	w.eventually("it is final", func() bool { w.clock.advance(time.Second); return w.get(id).Finalized })
	if w.balance(to) == 0 || w.heldBy(txmgr.HoldSecondEndpoint) != 0 {
		t.Errorf("the recipient holds %d, and %d submissions wait", w.balance(to), w.heldBy(txmgr.HoldSecondEndpoint))
	}
}

// pin is the sign of a proof's A that is accepted without a trial; "" before one has landed for good.
func (w *world) pin() string {
	w.t.Helper()
	sign, err := w.store.PinnedProofA(w.t.Context(), w.key.Hash())
	must(w.t, err)
	return sign
}

// TestFinalityNeedsTwoEndpoints: a landing that both endpoints know and only one reports as
// final is an outcome that a fork may still undo, and pins nothing.
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
		t.Fatalf("the submission ended as %+v, failure %v", s, s.Failure)
	}
	asked := func() uint64 { return w.chain.Stats()["getSignatureStatuses"] }
	before := asked()
	w.eventually("its finality is asked for", func() bool { w.clock.advance(time.Second); return asked() > before+20 || w.get(id).Finalized })
	if s, pin := w.get(id), w.pin(); s.State != submission.Completed || s.Finalized || pin != "" {
		t.Errorf("the submission is %+v and proof A pinned as %q: want it completed, not final and no pin", s, pin)
	}
}

// TestOutcomesWaitForASecondEndpointAndNewWorkDoesNot: one of two is away.
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
		w.eventually("it waits, and its place is free", func() bool {
			w.clock.advance(time.Second)
			taken, _ := r.InProgress()
			return w.heldBy(txmgr.HoldSecondEndpoint) == int64(n+1) && taken == 0
		})
	}
	if n := w.countBusy(); n != 0 {
		t.Errorf("%d submissions keep the pool busy, want none", n)
	}
	for _, id := range ids {
		if w.get(id).Done() {
			t.Error("a submission is done on the word of one endpoint")
		}
	}
	w.faults("two")
	for _, id := range ids {
		w.eventually("it is final", func() bool { return w.get(id).Finalized })
		if s := w.get(id); s.State != submission.Completed {
			t.Errorf("the submission ended as %+v", s)
		}
	}
	if r.of("signed") != 3 {
		t.Errorf("%d transactions were signed for 3 submissions", r.of("signed"))
	}
}

// TestALyingSimulationFailsNothing, neither while the other endpoint answers nor
// while it does not.
func TestALyingSimulationFailsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.awaitEndpoints("liar", "honest")
	no := fault.Rule{Method: "simulateTransaction", Outcome: fault.OutcomeFails, Err: `{"InstructionError":[2,{"Custom":4208}]}`}
	w.faults("liar", no)
	r := w.relayThrough(e)
	w.run(r)
	req, _ := w.withdrawal(sol)
	if s := w.done(w.submit(r, req).ID); s.State != submission.Completed {
		t.Errorf("the submission ended as %+v, failure %v, by one endpoint's simulation", s, s.Failure)
	}
	w.faults("honest", fault.Rule{Method: "simulateTransaction", Status: 503})
	req, _ = w.withdrawal(sol)
	id := w.submit(r, req).ID
	w.eventually("it waits for the other endpoint", func() bool { return w.heldBy(txmgr.HoldSecondEndpoint) == 1 })
	if s := w.get(id); s.Done() || w.countBusy() != 0 {
		t.Errorf("the submission is %+v, failure %v; %d keep the pool busy", s, s.Failure, w.countBusy())
	}
	w.faults("honest")
	if s := w.done(id); s.State != submission.Completed {
		t.Errorf("the submission ended as %+v, failure %v, by one endpoint's simulation", s, s.Failure)
	}
}

// TestALyingFailureFailsNothing: a transaction that one endpoint reports as finally failed still lands.
func TestALyingFailureFailsNothing(t *testing.T) {
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
	w.eventually("it waits for the two to agree", func() bool { return w.heldBy(txmgr.HoldSecondEndpoint) == 1 })
	w.faults("liar")
	if s := w.done(id); s.State != submission.Completed || r.of("signed") != 1 {
		t.Errorf("the submission ended as %+v, failure %v, after %d signatures", s, s.Failure, r.of("signed"))
	}
}

// TestALiarAheadStopsNoSigning: the endpoint that is asked first claims to be far ahead of the
// chain, or answers with old state as if it were current.
func TestALiarAheadStopsNoSigning(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for hundreds of slots")
	}
	t.Parallel()
	behind, ahead, past := []fault.Rule{{Lag: 15}}, []fault.Rule{{Ahead: 1000}}, []fault.Rule{{Lag: 140, Ahead: 140}}
	tests := map[string]struct {
		honest, first, later []fault.Rule // the rules of the honest endpoint and of the liar
	}{
		"once the relay runs": {later: ahead},
		"from the relay's start, when the honest one lags by more than a few slots": {honest: behind, first: ahead, later: ahead},
		"with the past, once the relay runs":                                        {later: past},
		"with the past, from the relay's start":                                     {first: past, later: past},
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
				w.deposit(10_000_000) // the old state does not have the root
				req, _ := w.withdrawal(sol)
				id := w.submit(r, req).ID
				w.eventually("it is final", func() bool { return w.get(id).Finalized })
				if s := w.get(id); s.State != submission.Completed {
					t.Errorf("the submission ended as %+v, failure %v", s, s.Failure)
				}
			}
		})
	}
}

// TestAProcessedTransactionIsSentAgain: an endpoint takes the transaction, drops it, and reports
// it as processed from then on.
func TestAProcessedTransactionIsSentAgain(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, 200*time.Millisecond) // it does not expire meanwhile
	r := w.relay(func(c txmgr.Chain) txmgr.Chain {
		says := &distorted{Chain: c, statuses: func(_ bool, all []*onchain.Status) {
			for i, s := range all {
				if s == nil {
					all[i] = &onchain.Status{Slot: 1, Confirmation: onchain.Processed}
				}
			}
		}}
		return &lossy{Chain: says, fate: func(n int64) (bool, bool) { return n > 1, true }}
	})
	w.run(r)
	req, _ := w.withdrawal(sol)
	if s := w.done(w.submit(r, req).ID); s.State != submission.Completed || r.of("signed") != 1 {
		t.Errorf("the submission ended as %+v, after %d signatures", s, r.of("signed"))
	}
}
