package chain

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/onchain"
)

var raw = []byte{1, 2, 3}

func preflight(err string) reply {
	return errorReply(`{"code":-32002,"message":"Transaction simulation failed","data":{"err":` + err + `}}`)
}

func TestSendGoesToAllSubmitEndpoints(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork("a", "b", "c")
		endpoints := endpointsNamed("a", "b", "c")
		endpoints[1].Roles = []Role{RoleRead, RoleArchive}
		e, _ := newEndpoints(t, n, endpoints, nil)
		for _, how := range []onchain.Sending{{First: true}, {First: true, SimulatedBy: "c"}, {First: true, SimulatedBy: "b"}, {}, {SimulatedBy: "c"}} {
			if err := e.Send(t.Context(), raw, how, 44); err != nil {
				t.Fatal(err)
			}
			if err := e.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"a", "c"} {
				want := `["AQID",{"encoding":"base64","maxRetries":0,"minContextSlot":44,"preflightCommitment":"confirmed","skipPreflight":true}]`
				if how.First && how.SimulatedBy != name {
					want = strings.Replace(want, "true", "false", 1)
				}
				if got := n[name].params("sendTransaction"); got != want {
					t.Errorf("%s received %s, want %s", name, got, want)
				}
			}
		}
		if n["b"].count("sendTransaction") != 0 {
			t.Error("the transaction was sent to an endpoint without the submit role")
		}
	})
}

// TestSendLowersUncorroboratedMinContextSlot: minContextSlot is lowered when it is the slot
// of a blockhash that no second endpoint confirms.
func TestSendLowersUncorroboratedMinContextSlot(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		liarSlot uint64
		slot     uint64 // of the blockhash
		want     string // in the parameters
	}{
		"the two never agreed":                       {1_000_000, 1_000_000, `"minContextSlot":126,`}, // the honest node's newest slot
		"the two never agreed, and the slot is true": {1_000_000, 90, `"minContextSlot":90,`},
		"the two agree":                              {101, 134, `"minContextSlot":134,`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork("honest", "liar")
				n["honest"].setSlot(100)
				n["liar"].setSlot(test.liarSlot)
				e, _ := newEndpoints(t, n, endpointsNamed("honest", "liar"), nil)
				startPolling(t, e, n, "honest", "liar")
				if err := e.Send(t.Context(), raw, onchain.Sending{First: true}, test.slot); err != nil {
					t.Fatal(err)
				}
				if err := e.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := n["honest"].params("sendTransaction"); !strings.Contains(got, test.want) {
					t.Errorf("the honest node received %s, want %s", got, test.want)
				}
			})
		})
	}
}

func TestSendResult(t *testing.T) {
	t.Parallel()
	stale, expired := preflight(`{"InstructionError":[2,{"Custom":4097}]}`), preflight(`"BlockhashNotFound"`)
	processed, invalid := preflight(`"AlreadyProcessed"`), errorReply(`{"code":-32602,"message":"too large"}`)
	hangs := reply{hang: true}
	tests := map[string]struct {
		a, b       reply
		wantKind   string
		wantSend   string // kind or detail of the transaction's error
		wantRPC    int
		wantWithin time.Duration
	}{
		"one accepts, one refuses":                           {a: resultReply(`"` + sigA.String() + `"`), b: stale},
		"one accepts, one hangs: the caller does not wait":   {a: hangs, b: resultReply(`"` + sigA.String() + `"`)},
		"one accepts, the other is down":                     {a: serverError, b: resultReply(`"` + sigA.String() + `"`)},
		"all refuse: the best endpoint's error":              {a: stale, b: expired, wantSend: "Custom"},
		"all refuse, one has processed the transaction":      {a: stale, b: processed, wantSend: "AlreadyProcessed"},
		"one refuses the transaction, one refuses the call":  {a: invalid, b: stale, wantSend: "Custom"},
		"all refuse the call":                                {a: invalid, b: invalid, wantRPC: -32602},
		"one refuses, one is down: the transaction may land": {a: stale, b: serverError, wantKind: onchain.KindServerError},
		"one refuses, one is behind":                         {a: stale, b: behind, wantKind: onchain.KindNodeBehind},
		"one refuses, one hangs: the transaction may land":   {a: stale, b: hangs, wantKind: onchain.KindTimeout, wantWithin: 5 * time.Second},
		"one returns no signature: the transaction may land": {a: resultReply(`{}`), b: stale, wantKind: onchain.KindBadResponse},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork("a", "b")
				n["a"].set("sendTransaction", test.a)
				n["b"].set("sendTransaction", test.b)
				e, _ := newEndpoints(t, n, endpointsNamed("a", "b"), nil)
				start := time.Now()
				err := e.Send(t.Context(), raw, onchain.Sending{First: true}, 0)
				if took := time.Since(start); took != test.wantWithin {
					t.Errorf("the send took %s, want %s", took, test.wantWithin)
				}
				var s *onchain.SendError
				switch {
				case test.wantSend != "":
					if !errors.As(err, &s) || (s.Err.Kind != test.wantSend && s.Err.Detail != test.wantSend) {
						t.Errorf("error is %v, want a send error of %s", err, test.wantSend)
					}
				case test.wantKind != "" || test.wantRPC != 0:
					checkError(t, err, test.wantKind, test.wantRPC, nil)
				case err != nil:
					t.Error(err)
				}
				if err := e.Flush(t.Context()); err != nil || n["a"].count("sendTransaction") != 1 || n["b"].count("sendTransaction") != 1 {
					t.Error("the transaction was not sent once to each endpoint")
				}
			})
		})
	}
}

// TestSendOutlivesItsCaller: neither the caller nor a shutdown cancels a send.
func TestSendOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork("a", "b")
		n["a"].set("sendTransaction", reply{body: resultReply(`"` + sigA.String() + `"`).body, after: time.Second})
		n["b"].set("sendTransaction", reply{hang: true})
		e, seen := newEndpoints(t, n, endpointsNamed("a", "b"), nil)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		checkError(t, e.Send(ctx, raw, onchain.Sending{First: true}, 0), onchain.KindCancelled, 0, context.Canceled)
		e.Close()
		short, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		if err := e.Flush(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("flush returned %v while a send was under way, want a timeout", err)
		}
		start := time.Now()
		if err := e.Flush(t.Context()); err != nil || time.Since(start) > 4*time.Second {
			t.Errorf("flush took %s more with error %v, want at most the rest of the send's timeout", time.Since(start), err)
		}
		seen.mu.Lock()
		defer seen.mu.Unlock()
		want := map[string]bool{"a sendTransaction ok": true, "b sendTransaction timeout": true}
		for _, c := range seen.called {
			delete(want, c)
		}
		if len(want) > 0 {
			t.Errorf("calls are %v, want also %v", seen.called, want)
		}
	})
}

func TestSendIsNeverWithheld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork("a", "b")
		e, _ := newEndpoints(t, n, endpointsNamed("a", "b"), nil)
		send := func() {
			t.Helper()
			if err := e.Send(t.Context(), raw, onchain.Sending{}, 0); err != nil {
				t.Fatal(err)
			}
			if err := e.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		openBreaker(e.all[0])
		send()
		if n["a"].count("sendTransaction") != 0 || n["b"].count("sendTransaction") != 1 {
			t.Error("the send did not go only to the healthy endpoint")
		}
		openBreaker(e.all[1])
		time.Sleep(time.Millisecond)
		send()
		if n["a"].count("sendTransaction") != 1 || n["b"].count("sendTransaction") != 2 {
			t.Error("without a healthy endpoint, the send did not go to all")
		}
		// The endpoints' success counts more than their earlier failures.
		for _, s := range e.Status() {
			if s.Breaker != outbound.Closed {
				t.Errorf("breaker of %s is %s after it accepted a transaction, want closed", s.Name, s.Breaker)
			}
		}
	})
}

func TestRebroadcastsStayInTheBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork("a", "b")
		endpoints := endpointsNamed("a", "b")
		endpoints[0].RequestsPerSecond = 4
		e, seen := newEndpoints(t, n, endpoints, nil)
		if _, err := e.GenesisHash(t.Context()); err != nil { // uses one of a's four requests
			t.Fatal(err)
		}
		for range 5 {
			if err := e.Send(t.Context(), raw, onchain.Sending{}, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		// A rebroadcast leaves a quarter of the burst to first sends.
		if a, b := n["a"].count("sendTransaction"), n["b"].count("sendTransaction"); a != 2 || b != 5 {
			t.Errorf("endpoints a and b got %d and %d rebroadcasts, want 2, which its budget allows, and 5", a, b)
		}
		if diff := cmp.Diff([]string{"a", "a", "a"}, seen.skipped); diff != "" {
			t.Errorf("skipped rebroadcasts differ (-want +got):\n%s", diff)
		}
		// First sends use the rest of the budget, and then wait.
		n["b"].fail(serverError)
		start := time.Now()
		for range 2 {
			if err := e.Send(t.Context(), raw, onchain.Sending{First: true}, 0); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took != 250*time.Millisecond {
			t.Errorf("two first sends took %s, want a quarter of a second", took)
		}
		if got := e.Status()[0]; got.LastError != "" {
			t.Errorf("status is %+v: an exhausted budget is recorded as an error of the endpoint", got)
		}
	})
}

func TestRebroadcastWithoutBudgetIsNotSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork("a")
		endpoints := endpointsNamed("a")
		endpoints[0].RequestsPerSecond = 1
		e, _ := newEndpoints(t, n, endpoints, nil)
		if _, err := e.GenesisHash(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkError(t, e.Send(t.Context(), raw, onchain.Sending{}, 0), onchain.KindBudget, 0, nil)
		if n["a"].count("sendTransaction") != 0 || e.Status()[0].Breaker != outbound.Closed {
			t.Error("the rebroadcast was sent, or opened the breaker")
		}
	})
}

// TestOneFailedRequestOfManySendsCountsOnce: five failures would open the breaker.
func TestOneFailedRequestOfManySendsCountsOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		shared, probe bool
		want          outbound.Outcome
	}{
		"the first":                            {false, false, outbound.Bad},
		"another":                              {true, false, outbound.NoOutcome},
		"another, which the breaker waits for": {true, true, outbound.Bad},
	} {
		u := &onchain.Unavailable{Method: methodSend, Kind: onchain.KindRateLimited, Shared: test.shared}
		if got := breakerOutcome(u, 0, test.probe); got != test.want {
			t.Errorf("%s: outcome %v, want %v", name, got, test.want)
		}
	}
}
