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
	return refuses(`{"code":-32002,"message":"Transaction simulation failed","data":{"err":` + err + `}}`)
}

func TestSendGoesToAllSubmitEndpoints(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork("a", "b", "c")
		endpoints := of("a", "b", "c")
		endpoints[1].Roles = []Role{RoleRead, RoleArchive}
		e, _ := newEndpoints(t, n, endpoints, nil)
		for _, first := range []bool{true, false} {
			if err := e.Send(t.Context(), raw, first, 44); err != nil {
				t.Fatal(err)
			}
			if err := e.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := `["AQID",{"encoding":"base64","maxRetries":0,"minContextSlot":44,"preflightCommitment":"confirmed","skipPreflight":true}]`
			if first {
				want = strings.Replace(want, "true", "false", 1)
			}
			for _, name := range []string{"a", "c"} {
				if got := n[name].params("sendTransaction"); got != want {
					t.Errorf("%s received %s, want %s", name, got, want)
				}
			}
		}
		if n["b"].count("sendTransaction") != 0 {
			t.Error("a transaction went to an endpoint that is not for it")
		}
	})
}

// TestALiedSlotKeepsNoHonestNodeFromATransaction: a node need not have reached the slot of a
// blockhash that no other endpoint confirms.
func TestALiedSlotKeepsNoHonestNodeFromATransaction(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		liar uint64 // its slot
		slot uint64 // of the blockhash
		want string // the node must have reached
	}{
		"the two never agreed":                 {1_000_000, 1_000_000, `"minContextSlot":126,`}, // its newest answer,
		"the two never agreed, and a true one": {1_000_000, 90, `"minContextSlot":90,`},
		"the two agree":                        {101, 134, `"minContextSlot":134,`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork("honest", "liar")
				n["honest"].at(100)
				n["liar"].at(test.liar)
				e, _ := newEndpoints(t, n, of("honest", "liar"), nil)
				known(t, e, n, "honest", "liar")
				if err := e.Send(t.Context(), raw, true, test.slot); err != nil {
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

func TestOutcomeOfASend(t *testing.T) {
	t.Parallel()
	stale, dead := preflight(`{"InstructionError":[2,{"Custom":4097}]}`), preflight(`"BlockhashNotFound"`)
	done, invalid := preflight(`"AlreadyProcessed"`), refuses(`{"code":-32602,"message":"too large"}`)
	hangs := reply{hang: true}
	tests := map[string]struct {
		a, b       reply
		wantKind   string
		wantSend   string // kind or detail of the transaction's error
		wantRPC    int
		wantWithin time.Duration
	}{
		"one takes it, one refuses":                  {a: says(`"` + sigA.String() + `"`), b: stale},
		"one takes it, one hangs: nobody waits":      {a: hangs, b: says(`"` + sigA.String() + `"`)},
		"one takes it though the other is down":      {a: sick, b: says(`"` + sigA.String() + `"`)},
		"all refuse: the best endpoint's word":       {a: stale, b: dead, wantSend: "Custom"},
		"all refuse, and one has processed it":       {a: stale, b: done, wantSend: "AlreadyProcessed"},
		"one refuses it, one the call":               {a: invalid, b: stale, wantSend: "Custom"},
		"all refuse the call":                        {a: invalid, b: invalid, wantRPC: -32602},
		"one refuses, one is down: it may land":      {a: stale, b: sick, wantKind: onchain.KindServerError},
		"one refuses, one is behind":                 {a: stale, b: behind, wantKind: onchain.KindNodeBehind},
		"one refuses, one hangs: it may land":        {a: stale, b: hangs, wantKind: onchain.KindTimeout, wantWithin: 5 * time.Second},
		"no answer that is a signature: it may land": {a: says(`{}`), b: stale, wantKind: onchain.KindBadResponse},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork("a", "b")
				n["a"].set("sendTransaction", test.a)
				n["b"].set("sendTransaction", test.b)
				e, _ := newEndpoints(t, n, of("a", "b"), nil)
				start := time.Now()
				err := e.Send(t.Context(), raw, true, 0)
				if took := time.Since(start); took != test.wantWithin {
					t.Errorf("it took %s, want %s", took, test.wantWithin)
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
					t.Error("it was not sent once to each")
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
		n["a"].set("sendTransaction", reply{body: says(`"` + sigA.String() + `"`).body, after: time.Second})
		n["b"].set("sendTransaction", reply{hang: true})
		e, seen := newEndpoints(t, n, of("a", "b"), nil)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		checkError(t, e.Send(ctx, raw, true, 0), onchain.KindCancelled, 0, context.Canceled)
		e.Close()
		short, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		if err := e.Flush(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("flush says %v while a send is under way", err)
		}
		start := time.Now()
		if err := e.Flush(t.Context()); err != nil || time.Since(start) > 4*time.Second {
			t.Errorf("flush took %s more with error %v, want the send's own timeout", time.Since(start), err)
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
		e, _ := newEndpoints(t, n, of("a", "b"), nil)
		send := func() {
			t.Helper()
			if err := e.Send(t.Context(), raw, false, 0); err != nil {
				t.Fatal(err)
			}
			if err := e.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		open(e.all[0])
		send()
		if n["a"].count("sendTransaction") != 0 || n["b"].count("sendTransaction") != 1 {
			t.Error("with one healthy endpoint the send goes there alone")
		}
		open(e.all[1])
		time.Sleep(time.Millisecond)
		send()
		if n["a"].count("sendTransaction") != 1 || n["b"].count("sendTransaction") != 2 {
			t.Error("with no healthy endpoint the send goes to all")
		}
		// They took it, which says more than their earlier answers.
		for _, s := range e.Status() {
			if s.Breaker != outbound.Closed {
				t.Errorf("breaker of %s is %s after it took a transaction", s.Name, s.Breaker)
			}
		}
	})
}

func TestRebroadcastsStayInTheBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork("a", "b")
		endpoints := of("a", "b")
		endpoints[0].RequestsPerSecond = 4
		e, seen := newEndpoints(t, n, endpoints, nil)
		if _, err := e.GenesisHash(t.Context()); err != nil { // uses one of a's four requests
			t.Fatal(err)
		}
		for range 5 {
			if err := e.Send(t.Context(), raw, false, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		// A rebroadcast leaves a quarter of the burst to first sends.
		if a, b := n["a"].count("sendTransaction"), n["b"].count("sendTransaction"); a != 2 || b != 5 {
			t.Errorf("%d and %d rebroadcasts, want 2 within the budget and 5", a, b)
		}
		if diff := cmp.Diff([]string{"a", "a", "a"}, seen.leftOut); diff != "" {
			t.Errorf("left out differ (-want +got):\n%s", diff)
		}
		// First sends take what is left, and then wait for more.
		n["b"].fail(sick)
		start := time.Now()
		for range 2 {
			if err := e.Send(t.Context(), raw, true, 0); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took != 250*time.Millisecond {
			t.Errorf("two first sends took %s, want a quarter of a second", took)
		}
		if got := e.Status()[0]; got.LastError != "" {
			t.Errorf("status is %+v: our own budget is held against the endpoint", got)
		}
	})
}

func TestRebroadcastThatNoBudgetAllows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork("a")
		endpoints := of("a")
		endpoints[0].RequestsPerSecond = 1
		e, _ := newEndpoints(t, n, endpoints, nil)
		if _, err := e.GenesisHash(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkError(t, e.Send(t.Context(), raw, false, 0), onchain.KindBudget, 0, nil)
		if n["a"].count("sendTransaction") != 0 || e.Status()[0].Breaker != outbound.Closed {
			t.Error("it was sent, or held against the endpoint")
		}
	})
}
