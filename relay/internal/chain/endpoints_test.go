package chain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/onchain"
)

func balance(t *testing.T, e *Endpoints) error {
	t.Helper()
	lamports, _, err := e.Balance(t.Context(), keyA, 0)
	if (err == nil) != (lamports == 5) {
		t.Errorf("balance is %d with error %v", lamports, err)
	}
	return err
}

// TestReadsFailOver: when the first endpoint gives no answer, the second one is asked. Only a
// hanging endpoint makes the caller wait.
func TestReadsFailOver(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		first  reply
		within time.Duration
	}{
		"HTTP 503":              {serverError, 0},
		"HTTP 429":              {reply{status: 429}, 0},
		"HTTP 403":              {reply{status: 403}, 0},
		"garbage":               {reply{body: "<html>"}, 0},
		"no value":              {resultReply(`{"context":{"slot":100}}`), 0},
		"a node that is behind": {behind, 0},
		"an unknown method":     {errorReply(`{"code":-32601,"message":"Method not found"}`), 0},
		"no answer":             {reply{hang: true}, 2 * time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork("a", "b")
				n["a"].fail(test.first)
				e, _ := newEndpoints(t, n, endpointsNamed("a", "b"), nil)
				start := time.Now()
				if err := balance(t, e); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took != test.within {
					t.Errorf("the read took %s, want %s", took, test.within)
				}
				if n["a"].count("") != 1 || n["b"].count("") != 1 {
					t.Errorf("%d and %d calls, want one each", n["a"].count(""), n["b"].count(""))
				}
			})
		})
	}
}

func TestReadSharesTheCallersTimeAmongEndpoints(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork("a", "b", "c")
		n["a"].fail(reply{hang: true})
		n["b"].fail(reply{hang: true})
		e, _ := newEndpoints(t, n, endpointsNamed("a", "b", "c"), nil)
		ctx, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
		defer cancel()
		start := time.Now()
		if _, _, err := e.Balance(ctx, keyA, 0); err != nil {
			t.Errorf("the third endpoint is not reached within the caller's time: %v", err)
		}
		if took := time.Since(start); took != 600*time.Millisecond {
			t.Errorf("the read took %s, want 300 ms at each of two hanging endpoints", took)
		}
	})
}

func TestErrorOfReadThatNoEndpointAnswers(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		a, b      reply
		wantKind  string
		wantRPC   int
		wantText  string
		wantCalls int // at endpoint a
	}{
		"all down":                              {serverError, reply{status: 403}, onchain.KindServerError, 0, "getBalance: chain is unavailable: server_error: a: server_error: HTTP 503; b: rejected: HTTP 403", 2},
		"all refuse":                            {errorReply(`{"code":-32602,"message":"no"}`), errorReply(`{"code":-32602,"message":"no"}`), "", -32602, "getBalance at a: the RPC endpoint refuses", 1},
		"one refuses, one is down":              {errorReply(`{"code":-32602,"message":"no"}`), serverError, onchain.KindServerError, 0, "getBalance at b: chain is unavailable: server_error: HTTP 503", 2},
		"all behind: each is asked three times": {behind, behind, onchain.KindNodeBehind, 0, "a: node_behind: code -32016", 3},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork("a", "b")
				n["a"].fail(test.a)
				n["b"].fail(test.b)
				e, _ := newEndpoints(t, n, endpointsNamed("a", "b"), nil)
				err := balance(t, e)
				checkError(t, err, test.wantKind, test.wantRPC, nil)
				if err == nil || !strings.Contains(err.Error(), test.wantText) {
					t.Errorf("error is %v, want %q in it", err, test.wantText)
				}
				if got := n["a"].count(""); got != test.wantCalls {
					t.Errorf("%d calls at endpoint a, want %d", got, test.wantCalls)
				}
			})
		})
	}
}

func TestPreferredEndpointOfReads(t *testing.T) {
	t.Parallel()
	read := func(t *testing.T, e *Endpoints, times int) {
		for range times {
			if err := balance(t, e); err != nil {
				t.Fatal(err)
			}
		}
	}
	tests := map[string]struct {
		change func(a, b *host)
		want   string // the endpoint that gets the next read
	}{
		"the first configured of two equal ones": {func(*host, *host) {}, "a"},
		"the much faster one": {func(a, _ *host) {
			a.set("getBalance", reply{body: resultReply(`{"context":{"slot":100},"value":5}`).body, after: 300 * time.Millisecond})
		}, "b"},
		"the first although it is a little slower": {func(a, _ *host) {
			a.set("getBalance", reply{body: resultReply(`{"context":{"slot":100},"value":5}`).body, after: 20 * time.Millisecond})
		}, "a"},
		"the second after one failure of the first": {func(a, _ *host) { a.set("getBalance", serverError) }, "b"},
		"the first when another method fails there": {func(a, _ *host) { a.set("getSlot", serverError) }, "a"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork("a", "b")
				e, _ := newEndpoints(t, n, endpointsNamed("a", "b"), nil)
				test.change(n["a"], n["b"])
				if _, err := e.Slot(t.Context(), onchain.Confirmed); err != nil {
					t.Fatal(err)
				}
				read(t, e, 1)
				before := n[test.want].count("getBalance")
				read(t, e, 1)
				if got := n[test.want].count("getBalance"); got != before+1 {
					t.Errorf("the read did not go to %s", test.want)
				}
			})
		})
	}
}

func TestLaggingNodeIsAskedLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork("a", "b")
		e, _ := newEndpoints(t, n, endpointsNamed("a", "b"), nil)
		advanceTime := startPolling(t, e, n, "a", "b")
		stuckSlot := n["a"].currentSlot()
		for range 12 {
			advanceTime(2 * time.Second)
			n["a"].setSlot(stuckSlot)
		}
		asked := n["a"].count("getBalance")
		if err := balance(t, e); err != nil || n["a"].count("getBalance") != asked {
			t.Errorf("the read went to the lagging node, with error %v", err)
		}
		want := []EndpointStatus{
			{Name: "a", Roles: []Role{RoleRead, RoleSubmit}, Breaker: outbound.Closed},
			{Name: "b", Roles: []Role{RoleRead, RoleSubmit}, Breaker: outbound.Closed},
		}
		got := e.Status()
		if got[0].Lag <= defaultMaxLag || got[1].Lag > 0 {
			t.Errorf("lags are %d and %d, want the first above %d and the second 0", got[0].Lag, got[1].Lag, defaultMaxLag)
		}
		for i := range got {
			if time.Since(got[i].SlotAt) > 6*time.Second {
				t.Errorf("the slot of %s is from %s ago", got[i].Name, time.Since(got[i].SlotAt))
			}
			got[i].SlotAt, got[i].Slot, got[i].Lag = time.Time{}, 0, 0
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("status differs (-want +got):\n%s", diff)
		}
		// The lagging endpoint is asked while the other is down. Once it has caught up, it is asked
		// first again.
		n["b"].fail(serverError)
		if err := balance(t, e); err != nil || n["a"].count("getBalance") != asked+1 {
			t.Errorf("the lagging node is not asked while the other is down: %v", err)
		}
		n["b"].heal()
		n["a"].setSlot(n["b"].currentSlot())
		advanceTime(8 * time.Second)
		if err := balance(t, e); err != nil || n["a"].count("getBalance") != asked+2 {
			t.Errorf("the node that has caught up is not asked: %v", err)
		}
	})
}

func TestEndpointWithOpenBreakerIsSkippedAndProbed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork("a", "b")
		e, seen := newEndpoints(t, n, endpointsNamed("a", "b"), nil)
		n["a"].fail(serverError)
		n["b"].set("getBalance", errorReply(`{"code":-32601,"message":"Method not found"}`))
		for range 3 {
			if err := balance(t, e); err == nil {
				t.Fatal("a read without a healthy endpoint returned no error")
			}
		}
		if got := e.Status()[0]; got.Breaker != outbound.Open || got.LastError != onchain.KindServerError || time.Since(got.LastErrorAt) > time.Second {
			t.Errorf("status is %+v, want an open breaker and its reason", got)
		}
		calls := n["a"].count("")
		n["b"].heal()
		for range 20 {
			if err := balance(t, e); err != nil {
				t.Fatal(err)
			}
		}
		if got := n["a"].count(""); got != calls {
			t.Errorf("an open breaker let %d calls through", got-calls)
		}
		// No caller asks it: a probe of Run finds that it has recovered.
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go e.Run(ctx)
		time.Sleep(3 * time.Second)
		n["a"].heal()
		time.Sleep(10 * time.Second)
		if diff := cmp.Diff("a closed", last(seen.breakers())); diff != "" {
			t.Errorf("the last breaker change differs (-want +got):\n%s", diff)
		}
		want := "level=WARN msg=\"rpc endpoint breaker opened\" endpoint=a last_error=server_error\nlevel=INFO msg=\"rpc endpoint breaker closed\" endpoint=a\n"
		if diff := cmp.Diff(want, seen.logged()); diff != "" {
			t.Errorf("log differs, want every change once (-want +got):\n%s", diff)
		}
	})
}

func last[T any](values []T) (out T) {
	if len(values) > 0 {
		out = values[len(values)-1]
	}
	return out
}

// TestSingleEndpointRecovers: after it recovered, its breaker delays no call.
func TestSingleEndpointRecovers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork("a")
		e, seen := newEndpoints(t, n, endpointsNamed("a"), nil)
		n["a"].fail(serverError)
		checkError(t, balance(t, e), onchain.KindServerError, 0, nil)
		if got := n["a"].count(""); got != 3 {
			t.Errorf("%d calls, want 3, as no other endpoint can answer", got)
		}
		for e.Status()[0].Breaker == outbound.Closed {
			if balance(t, e) == nil {
				t.Fatal("a read of the endpoint that is down returned no error")
			}
		}
		// This read waits for the first probe, which fails.
		if err := balance(t, e); err == nil {
			t.Fatal("a read whose probe failed returned no error")
		}
		time.Sleep(time.Minute)
		n["a"].heal()
		start := time.Now()
		if err := balance(t, e); err != nil || time.Since(start) != 0 {
			t.Errorf("after the recovery the read took %s with error %v, want 0 s and none", time.Since(start), err)
		}
		if diff := cmp.Diff([]string{"a half_open", "a closed"}, seen.breakers()[len(seen.breakers())-2:]); diff != "" {
			t.Errorf("the last breaker changes differ (-want +got):\n%s", diff)
		}
	})
}

// openBreaker opens the endpoint's breaker for the first time, which lasts 575 ms.
func openBreaker(ep *endpoint) {
	for range 5 {
		permit, _ := ep.breaker.Try()
		permit.Done(outbound.Bad)
	}
}

func TestReadWaitsForAnotherReadsProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork("a")
		e, _ := newEndpoints(t, n, endpointsNamed("a"), nil)
		openBreaker(e.all[0])
		n["a"].set("getBalance", reply{body: resultReply(`{"context":{"slot":100},"value":5}`).body, after: 100 * time.Millisecond})
		results := make(chan error, 3)
		before := n["a"].count("getBalance")
		for range 3 {
			go func() { results <- balance(t, e) }()
		}
		time.Sleep(600 * time.Millisecond) // the delay is 575 ms
		if got := n["a"].count("getBalance") - before; got != 1 {
			t.Errorf("%d probes, want 1", got)
		}
		for range 3 {
			if err := <-results; err != nil {
				t.Errorf("a read that waited failed: %v", err)
			}
		}
	})
}

func TestReadFailsFastWhileAllBreakersAreOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork("a")
		n["a"].fail(reply{status: 429, header: http.Header{"Retry-After": {"20"}}})
		e, _ := newEndpoints(t, n, endpointsNamed("a"), nil)
		start := time.Now()
		err := balance(t, e)
		checkError(t, err, onchain.KindBreakerOpen, 0, nil)
		if took := time.Since(start); took < time.Second || took > 1500*time.Millisecond || n["a"].count("") != 1 {
			t.Errorf("the read took %s and %d calls, want about a second and one call, as Retry-After is 20 s", took, n["a"].count(""))
		}
		n["a"].heal()
		time.Sleep(17 * time.Second)
		checkError(t, balance(t, e), onchain.KindBreakerOpen, 0, nil)
		if n["a"].count("") != 1 {
			t.Error("the endpoint was asked before its Retry-After was over")
		}
		time.Sleep(3 * time.Second)
		if err := balance(t, e); err != nil {
			t.Error(err)
		}
	})
}

func TestCancelledCallOpensBreakerOnlyAfterASecond(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		after time.Duration
		want  outbound.State
	}{
		"after a short time":                 {10 * time.Millisecond, outbound.Closed},
		"after a second: the endpoint hangs": {1500 * time.Millisecond, outbound.Open},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork("a")
				n["a"].fail(reply{hang: true})
				e, _ := newEndpoints(t, n, endpointsNamed("a"), nil)
				for range 5 {
					ctx, cancel := context.WithTimeout(t.Context(), test.after)
					_, _, err := e.Balance(ctx, keyA, 0)
					cancel()
					checkError(t, err, onchain.KindCancelled, 0, context.DeadlineExceeded)
				}
				if got := e.Status()[0].Breaker; got != test.want {
					t.Errorf("breaker is %s, want %s", got, test.want)
				}
			})
		})
	}
}

func TestReadsPreferEndpointsWithBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork("a", "b")
		endpoints := endpointsNamed("a", "b")
		endpoints[0].RequestsPerSecond, endpoints[1].RequestsPerSecond = 3, 2 // each spends one request on the genesis hash
		e, _ := newEndpoints(t, n, endpoints, nil)
		start := time.Now()
		for range 3 {
			if err := balance(t, e); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took != 0 || n["a"].count("") != 2 || n["b"].count("") != 1 {
			t.Errorf("%d and %d reads in %s, want 2 and 1 without a wait", n["a"].count(""), n["b"].count(""), took)
		}
		// With exhausted budgets, a read waits.
		if err := balance(t, e); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < 300*time.Millisecond || took > 400*time.Millisecond {
			t.Errorf("the read waited %s, want a third of a second", took)
		}
		for _, s := range e.Status() {
			if s.LastError != "" || s.Breaker != outbound.Closed {
				t.Errorf("status is %+v: an exhausted budget is recorded as an error of the endpoint", s)
			}
		}
	})
}

func TestGenesis(t *testing.T) {
	t.Parallel()
	other := solana.Hash{66}
	t.Run("an endpoint of another chain is never used", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork("a", "b")
			n["a"].chain = other
			e, seen := newEndpoints(t, n, endpointsNamed("a", "b"), nil)
			for range 3 {
				if err := balance(t, e); err != nil {
					t.Fatal(err)
				}
			}
			if err := e.Send(t.Context(), []byte{1}, onchain.Sending{First: true}, 0); err != nil {
				t.Fatal(err)
			}
			if got := n["a"].count(""); got != 0 {
				t.Errorf("%d calls at an endpoint of another chain, want none", got)
			}
			hash, err := e.GenesisHash(t.Context())
			var wrong *GenesisError
			if !errors.As(err, &wrong) || hash != hashA {
				t.Fatalf("hash is %s with error %v, want %s and a genesis error", hash, err, hashA)
			}
			if diff := cmp.Diff(&GenesisError{Endpoint: "a", Got: other, Want: hashA}, wrong); diff != "" {
				t.Errorf("error differs (-want +got):\n%s", diff)
			}
			if got := strings.Count(seen.logged(), "level=ERROR msg=\"rpc endpoint serves another chain\" endpoint=a"); got != 1 || !e.Status()[0].Foreign {
				t.Errorf("the foreign endpoint is logged %d times, want once; its status is foreign: %v, want true", got, e.Status()[0].Foreign)
			}
			// The endpoint is used once it has been corrected, without a restart.
			n["a"].mu.Lock()
			n["a"].chain = hashA
			n["a"].mu.Unlock()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go e.Run(ctx)
			time.Sleep(recheckInterval + time.Second)
			if _, err := e.GenesisHash(t.Context()); err != nil || balance(t, e) != nil || n["a"].count("getBalance") == 0 {
				t.Errorf("the corrected endpoint is not used: %v", err)
			}
		})
	})
	t.Run("without a configured hash the first endpoint decides, not the fastest", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork("a", "b", "c")
			n["a"].set("getGenesisHash", reply{body: resultReply(fmt.Sprintf("%q", hashA)).body, after: time.Second})
			n["c"].chain = other
			e, _ := newEndpoints(t, n, endpointsNamed("a", "b", "c"), func(o *EndpointsOptions) { o.Genesis = solana.Hash{} })
			if err := balance(t, e); err != nil {
				t.Fatal(err)
			}
			if hash, err := e.GenesisHash(t.Context()); hash != hashA || !strings.Contains(fmt.Sprint(err), "RPC endpoint c serves another chain") {
				t.Errorf("hash is %s with error %v, want the hash of a, and c in the error", hash, err)
			}
		})
	})
	t.Run("an endpoint that is down at the start is asked for its chain before it is used", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork("a", "b")
			n["a"].set("getGenesisHash", serverError)
			n["a"].chain = other
			e, _ := newEndpoints(t, n, endpointsNamed("a", "b"), nil)
			if hash, err := e.GenesisHash(t.Context()); err != nil || hash != hashA {
				t.Errorf("hash is %s with error %v, want that of b", hash, err)
			}
			n["a"].heal()
			n["b"].fail(serverError)
			checkError(t, balance(t, e), onchain.KindServerError, 0, nil)
			if n["a"].count("") != 0 || !e.Status()[0].Foreign {
				t.Error("an endpoint of another chain was used")
			}
		})
	})
	t.Run("no endpoint reports its chain", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork("a", "b")
			n["a"].set("getGenesisHash", serverError)
			n["b"].set("getGenesisHash", serverError)
			e, _ := newEndpoints(t, n, endpointsNamed("a", "b"), func(o *EndpointsOptions) { o.Genesis = solana.Hash{} })
			hash, err := e.GenesisHash(t.Context())
			if !hash.IsZero() {
				t.Errorf("hash is %s, want zero", hash)
			}
			checkError(t, err, onchain.KindServerError, 0, nil)
			checkError(t, balance(t, e), onchain.KindServerError, 0, nil)
		})
	})
	t.Run("all serve another chain", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork("a")
			n["a"].chain = other
			e, _ := newEndpoints(t, n, endpointsNamed("a"), nil)
			for range 2 {
				checkError(t, balance(t, e), onchain.KindRejected, 0, nil)
				checkError(t, e.Send(t.Context(), []byte{1}, onchain.Sending{First: true}, 0), onchain.KindRejected, 0, nil)
			}
			if n["a"].count("") != 0 {
				t.Error("an endpoint of another chain was used")
			}
		})
	})
	t.Run("a submit endpoint that does not report its chain gets transactions", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork("a", "b")
			n["b"].set("getGenesisHash", errorReply(`{"code":-32601,"message":"Method not found"}`))
			endpoints := endpointsNamed("a", "b")
			endpoints[1].Roles = []Role{RoleSubmit}
			e, _ := newEndpoints(t, n, endpoints, nil)
			if err := e.Send(t.Context(), []byte{1}, onchain.Sending{First: true}, 0); err != nil {
				t.Fatal(err)
			}
			if err := e.Flush(t.Context()); err != nil || n["b"].count("sendTransaction") != 1 {
				t.Errorf("%d sends, want 1", n["b"].count("sendTransaction"))
			}
		})
	})
}

func TestNewEndpointsRefusesInvalidOptions(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change   func(*EndpointsOptions)
		wantText string
	}{
		"no endpoints":               {func(o *EndpointsOptions) { o.Endpoints = nil }, "no RPC endpoint has the role read"},
		"no read endpoint":           {func(o *EndpointsOptions) { o.Endpoints[0].Roles = []Role{RoleSubmit, RoleArchive} }, "no RPC endpoint has the role read"},
		"no submit endpoint":         {func(o *EndpointsOptions) { o.Endpoints[0].Roles = []Role{RoleRead} }, "no RPC endpoint has the role submit"},
		"an unknown role":            {func(o *EndpointsOptions) { o.Endpoints[0].Roles = []Role{"canary"} }, "RPC endpoint a: role of 6 characters is not known"},
		"no name":                    {func(o *EndpointsOptions) { o.Endpoints[0].Name = "" }, "RPC endpoint 1 has a name of 0 characters"},
		"a URL as name":              {func(o *EndpointsOptions) { o.Endpoints[0].Name = "https://canary" }, "RPC endpoint 1 has a name of 14 characters"},
		"a name twice":               {func(o *EndpointsOptions) { o.Endpoints = endpointsNamed("a", "b", "a") }, "RPC endpoint 3 has the name a of an earlier one"},
		"no URL":                     {func(o *EndpointsOptions) { o.Endpoints[0].URL = "" }, "RPC endpoint a: RPC URL of 0 bytes is not usable"},
		"an invalid WebSocket URL":   {func(o *EndpointsOptions) { o.Endpoints[0].WebSocketURL = "https://canary" }, "RPC endpoint a: WebSocket URL of 14 bytes is not usable"},
		"negative requests a second": {func(o *EndpointsOptions) { o.Endpoints[0].RequestsPerSecond = -1 }, "RPC endpoint a: requests a second are -1"},
		"a negative timeout":         {func(o *EndpointsOptions) { o.Timeout = -1 }, "RPC timeout is -1ns"},
		"a negative probe":           {func(o *EndpointsOptions) { o.Probe = -1 }, "interval of probes is -1ns"},
		"no clock":                   {func(o *EndpointsOptions) { o.Now = nil }, "a clock"},
		"no random numbers":          {func(o *EndpointsOptions) { o.Rand = nil }, "random numbers"},
		"no log":                     {func(o *EndpointsOptions) { o.Log = nil }, "a log"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := EndpointsOptions{Endpoints: endpointsNamed("a"), Now: time.Now, Rand: func() float64 { return 0 }, Log: slog.New(slog.DiscardHandler)}
			test.change(&o)
			e, err := NewEndpoints(o)
			if err == nil || e != nil {
				t.Fatal("the options are accepted")
			}
			checkCanaries(t, err.Error())
			if !strings.Contains(err.Error(), test.wantText) {
				t.Errorf("error is %q, want %q in it", err, test.wantText)
			}
		})
	}
}
