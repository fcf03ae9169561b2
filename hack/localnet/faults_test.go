package localnet_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/fault"
)

// withFaults returns a fixture on the same chain that uses another endpoint, which has
// the given faults.
func (f *fixture) withFaults(rules ...fault.Rule) *fixture {
	f.t.Helper()
	endpoint := f.Endpoint("faulty")
	if err := endpoint.SetFaults(rules); err != nil {
		f.t.Fatal(err)
	}
	server := httptest.NewServer(endpoint)
	f.t.Cleanup(server.Close)
	return &fixture{Chain: f.Chain, Client: rpc.New(server.URL), t: f.t, url: server.URL, payer: f.payer}
}

// reply is an answer over HTTP.
type reply struct {
	status     int
	retryAfter string
	body       string
}

// tryPost posts a body on a new connection. It stops after the timeout, or when the test
// ends.
func (f *fixture) tryPost(body string, timeout time.Duration) (reply, error) {
	f.t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: timeout}
	request, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, f.url, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	return reply{response.StatusCode, response.Header.Get("Retry-After"), string(bytes.TrimSpace(raw))}, err
}

const (
	slotCall    = `{"jsonrpc":"2.0","id":1,"method":"getSlot","params":[{"commitment":"processed"}]}`
	longTimeout = 30 * time.Second
	// shortTimeout is the timeout of a call that gets no answer.
	shortTimeout = 200 * time.Millisecond
)

// sendCall encodes a call that sends a new transfer without preflight.
func (f *fixture) sendCall(lamports uint64) (call string, signature solana.Signature) {
	f.t.Helper()
	tx := f.sign(f.blockhash(rpc.CommitmentProcessed), f.transfer(lamports))
	raw, err := tx.MarshalBinary()
	if err != nil {
		f.t.Fatal(err)
	}
	return `{"jsonrpc":"2.0","id":1,"method":"sendTransaction","params":["` + base64.StdEncoding.EncodeToString(raw) +
		`",{"encoding":"base64","skipPreflight":true}]}`, tx.Signatures[0]
}

// landed reports whether the fixture's endpoint has the status of a transaction.
func (f *fixture) landed(signature solana.Signature) bool {
	f.t.Helper()
	out, err := f.GetSignatureStatuses(context.Background(), true, signature)
	if err != nil {
		f.t.Fatal(err)
	}
	return out.Value[0] != nil
}

func TestCallFailsAsTheRuleSays(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	tests := map[string]struct {
		rule      fault.Rule
		want      reply
		wantError string
	}{
		"too many requests":                       {fault.Rule{Status: 429}, reply{429, "", `{"jsonrpc":"2.0","error":{"code":429,"message":"Too Many Requests"},"id":null}`}, ""},
		"too many requests, with a time to retry": {fault.Rule{Status: 429, RetryAfter: 1200 * time.Millisecond}, reply{429, "2", `{"jsonrpc":"2.0","error":{"code":429,"message":"Too Many Requests"},"id":null}`}, ""},
		"service unavailable":                     {fault.Rule{Status: 503}, reply{503, "", `{"jsonrpc":"2.0","error":{"code":503,"message":"Service Unavailable"},"id":null}`}, ""},
		"a JSON-RPC error":                        {fault.Rule{Error: fault.Error{Code: -32603, Message: "Internal error"}}, reply{200, "", `{"jsonrpc":"2.0","error":{"code":-32603,"message":"Internal error"},"id":1}`}, ""},
		"a cut connection":                        {fault.Rule{Cut: true}, reply{}, "EOF"},
		"another method":                          {fault.Rule{Method: "getBalance", Cut: true}, reply{200, "", `{"jsonrpc":"2.0","result":33,"id":1}`}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := f.withFaults(test.rule).tryPost(slotCall, longTimeout)
			if (err == nil) != (test.wantError == "") || err != nil && !strings.Contains(err.Error(), test.wantError) {
				t.Errorf("error %v, want %q", err, test.wantError)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(reply{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLatencyDelaysAnswers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{}).withFaults(fault.Rule{Method: "getSlot", Latency: 60 * time.Millisecond}, fault.Rule{Latency: 60 * time.Millisecond})
	began := time.Now()
	if _, err := f.tryPost(slotCall, longTimeout); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 120*time.Millisecond {
		t.Errorf("the answer took %s, want 120ms or more", took)
	}
}

func TestHangLastsUntilTheClientTimesOut(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{}).withFaults(fault.Rule{Hang: true})
	var timeout interface{ Timeout() bool }
	if _, err := f.tryPost(slotCall, shortTimeout); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("got %v, want a timeout", err)
	}
}

// TestFailedSendMayLand checks that the transaction of a failed send lands if the rule is
// afterActing, and does not land otherwise.
func TestFailedSendMayLand(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	endingRules := map[string]fault.Rule{
		"status":         {Status: 502},
		"JSON-RPC error": {Error: fault.Error{Code: -32603, Message: "Internal error"}},
		"cut":            {Cut: true},
		"delayed error":  {Status: 504, Latency: 10 * time.Millisecond},
	}
	waitingRules := map[string]fault.Rule{"hang": {Hang: true}, "a long wait": {Latency: time.Hour}}
	lamports := uint64(1_000_000)
	send := func(t *testing.T, rule fault.Rule, acts bool) (faulty *fixture, call string, signature solana.Signature) {
		t.Helper()
		rule.AfterActing = acts
		lamports++
		call, signature = f.sendCall(lamports)
		return f.withFaults(rule), call, signature
	}
	for _, acts := range []bool{false, true} {
		for name, rule := range endingRules {
			t.Run(name, func(t *testing.T) {
				faulty, call, signature := send(t, rule, acts)
				got, err := faulty.tryPost(call, longTimeout)
				if err == nil && got.status == http.StatusOK && !strings.Contains(got.body, `"error"`) {
					t.Errorf("the send is answered with %+v, want a failure", got)
				}
				if landed := f.landed(signature); landed != acts {
					t.Errorf("the transaction landed: %t, want %t", landed, acts)
				}
			})
		}
	}
	for name, rule := range waitingRules {
		t.Run(name+" before acting", func(t *testing.T) {
			faulty, call, signature := send(t, rule, false)
			if got, err := faulty.tryPost(call, shortTimeout); err == nil || f.landed(signature) {
				t.Errorf("got %+v and landed: %t, want no answer and no landing", got, f.landed(signature))
			}
		})
		t.Run(name+" after acting", func(t *testing.T) {
			faulty, call, signature := send(t, rule, true)
			ended := make(chan error, 1)
			go func() {
				_, err := faulty.tryPost(call, longTimeout)
				ended <- err
			}()
			eventually(t, "the transaction lands", func() bool { return f.landed(signature) })
			select {
			case err := <-ended:
				t.Errorf("the send ended with error %v, want it still waiting", err)
			default:
			}
		})
	}
}

// eventually waits until condition returns true.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(longTimeout); !condition(); {
		if time.Now().After(deadline) {
			t.Fatalf("not true in %s: %s", longTimeout, what)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestDroppedTransactionIsAnsweredAndDoesNotLand(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	faulty := f.withFaults(fault.Rule{Drop: true})
	tx := f.sign(f.blockhash(rpc.CommitmentProcessed), f.transfer(1_000_000))
	if got := faulty.send(tx); got != tx.Signatures[0] {
		t.Errorf("the send is answered with %s, want the signature %s", got, tx.Signatures[0])
	}
	if f.landed(tx.Signatures[0]) {
		t.Error("the transaction landed, want it dropped")
	}
	if got := f.send(tx); !f.landed(got) {
		t.Error("the same transaction does not land through another endpoint")
	}
}

func TestEmptyFaultReturnsNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	signature := f.send(f.sign(f.blockhash(rpc.CommitmentProcessed), f.transfer(1_000_000)))
	f.Finalize()
	faulty := f.withFaults(fault.Rule{Empty: true})
	payer := f.payer.PublicKey().String()
	tests := map[string]struct{ params, want string }{
		"getBalance":              {`["` + payer + `"]`, `0`},
		"getAccountInfo":          {`["` + payer + `"]`, `null`},
		"getMultipleAccounts":     {`[["` + payer + `","` + payer + `"]]`, `[null,null]`},
		"getSignatureStatuses":    {`[["` + signature.String() + `"],{"searchTransactionHistory":true}]`, `[null]`},
		"getSignaturesForAddress": {`["` + payer + `"]`, `[]`},
		"getTransaction":          {`["` + signature.String() + `"]`, `null`},
		"getBlocks":               {`[0,10]`, `[]`},
	}
	for method, test := range tests {
		value := func(f *fixture) string {
			raw := f.call(method, test.params).Result
			var withContext struct{ Value json.RawMessage }
			if json.Unmarshal(raw, &withContext) == nil && withContext.Value != nil {
				raw = withContext.Value
			}
			if len(raw) == 0 {
				return "null" // json.Unmarshal leaves a RawMessage empty for null
			}
			return string(raw)
		}
		if got := value(faulty); got != test.want {
			t.Errorf("%s answers %s, want %s", method, got, test.want)
		}
		if got := value(f); got == test.want {
			t.Errorf("%s answers %s without the fault, too", method, got)
		}
	}
}

func TestLaggingNodeReturnsOldState(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	ctx := context.Background()
	signature := f.send(f.sign(f.blockhash(rpc.CommitmentProcessed), f.transfer(1_000_000)))
	f.Advance(5)
	faulty := f.withFaults(fault.Rule{Lag: 10})
	now, err := f.GetSlot(ctx, rpc.CommitmentConfirmed)
	if err != nil {
		t.Fatal(err)
	}
	then, err := faulty.GetSlot(ctx, rpc.CommitmentConfirmed)
	if err != nil || then != now-10 {
		t.Errorf("slot is %d with error %v, want %d", then, err, now-10)
	}
	if out, err := faulty.GetSignatureStatuses(ctx, true, signature); err != nil || out.Value[0] != nil {
		t.Errorf("statuses are %v with error %v, want null: the node has not seen the block", out, err)
	}
	if health, err := faulty.GetHealth(ctx); err != nil || health != "ok" {
		t.Errorf("health is %q with error %v, want ok: 10 slots are within Agave's tolerance", health, err)
	}
	out := faulty.call("getBalance", `["`+f.payer.PublicKey().String()+`",{"commitment":"confirmed","minContextSlot":`+jsonOf(t, now)+`}]`)
	if out.Error == nil || out.Error.Code != -32016 || string(out.Error.Data) != `{"contextSlot":`+jsonOf(t, then)+`}` {
		t.Errorf("with a later minContextSlot the answer is %+v, want error -32016 with slot %d", out, then)
	}

	// The node has not seen this blockhash. Its preflight therefore refuses the transaction.
	// Without preflight the node forwards the transaction to the leader.
	tx := f.sign(f.blockhash(rpc.CommitmentConfirmed), f.transfer(2_000_000))
	if _, err := faulty.SendTransaction(ctx, tx); err == nil || !strings.Contains(err.Error(), "Blockhash not found") {
		t.Errorf("sending with preflight returns %v, want Blockhash not found", err)
	}
	if _, err := faulty.SendTransactionWithOpts(ctx, tx, rpc.TransactionOpts{SkipPreflight: true}); err != nil || !f.landed(tx.Signatures[0]) {
		t.Errorf("sending without preflight returns %v and landed: %t, want it landed", err, f.landed(tx.Signatures[0]))
	}
}

func jsonOf(t testing.TB, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestHealthReportsLagUnlessHealthIsFaked(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	f.Advance(200)
	tests := map[string]struct {
		rules        []fault.Rule
		wantHealth   string
		wantSendable bool
	}{
		"no faults":                             {nil, `"ok"`, true},
		"128 slots behind":                      {[]fault.Rule{{Lag: 128}}, `"ok"`, true},
		"129 slots behind":                      {[]fault.Rule{{Lag: 129}}, `{"numSlotsBehind":129}`, false},
		"129 slots behind, reported as healthy": {[]fault.Rule{{Lag: 129}, {Health: fault.HealthOK}}, `"ok"`, false},
		"not behind, reported as behind":        {[]fault.Rule{{Health: fault.HealthBehind}}, `{"numSlotsBehind":129}`, true},
		"only account reads behind":             {[]fault.Rule{{Method: "getAccountInfo", Lag: 150}}, `"ok"`, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			faulty := f.withFaults(test.rules...)
			health := faulty.call("getHealth", `[]`)
			got := string(health.Result)
			if health.Error != nil {
				got = string(health.Error.Data)
			}
			if got != test.wantHealth {
				t.Errorf("health is %s, want %s", got, test.wantHealth)
			}
			// The blockhash is old, so that only the node's health decides.
			tx := f.sign(f.blockhash(rpc.CommitmentFinalized), f.transfer(uint64(1_000_000+len(name))))
			_, err := faulty.SendTransaction(context.Background(), tx)
			behind := err != nil && strings.Contains(err.Error(), "Node is behind by")
			if behind == test.wantSendable {
				t.Errorf("preflight returns %v; a refusal because the node is behind is expected: %t", err, !test.wantSendable)
			}
		})
	}
}

func TestFrozenBlockhashStaysWhileTheChainAdvances(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	faulty := f.withFaults(fault.Rule{FrozenBlockhash: true})
	for _, level := range []rpc.CommitmentType{rpc.CommitmentProcessed, rpc.CommitmentConfirmed, rpc.CommitmentFinalized} {
		before := f.call("getLatestBlockhash", `[{"commitment":"`+string(level)+`"}]`)
		f.Advance(3)
		// A new rule with the same fault keeps the frozen answer.
		if err := f.Endpoint("faulty").SetFaults([]fault.Rule{{Method: "getLatestBlockhash", FrozenBlockhash: true}}); err != nil {
			t.Fatal(err)
		}
		after := faulty.call("getLatestBlockhash", `[{"commitment":"`+string(level)+`"}]`)
		if level == rpc.CommitmentProcessed && string(before.Result) != string(after.Result) {
			t.Errorf("the answer is %s, want the frozen %s", after.Result, before.Result)
		}
		if string(f.call("getLatestBlockhash", `[{"commitment":"`+string(level)+`"}]`).Result) == string(after.Result) {
			t.Errorf("at %s the endpoint without the fault is frozen, too", level)
		}
	}
	unfrozen := f.withFaults()
	if string(unfrozen.call("getLatestBlockhash", `[]`).Result) != string(f.call("getLatestBlockhash", `[]`).Result) {
		t.Error("the blockhash stays frozen without the rule")
	}
}

func TestShortHistoryOmitsOldTransactions(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	ctx := context.Background()
	old := f.send(f.sign(f.blockhash(rpc.CommitmentProcessed), f.transfer(1_000_000)))
	f.Advance(200)
	recent := f.send(f.sign(f.blockhash(rpc.CommitmentProcessed), f.transfer(2_000_000)))
	f.Finalize()
	faulty := f.withFaults(fault.Rule{History: 100})
	tip, err := f.GetSlot(ctx, rpc.CommitmentProcessed)
	if err != nil {
		t.Fatal(err)
	}
	if first, err := faulty.GetFirstAvailableBlock(ctx); err != nil || first != tip-99 {
		t.Errorf("first available block is %d with error %v, want %d", first, err, tip-99)
	}
	if out, err := faulty.GetSignatureStatuses(ctx, true, old, recent); err != nil || out.Value[0] != nil || out.Value[1] == nil {
		t.Errorf("statuses are %v with error %v, want only the recent one", out, err)
	}
	if _, err := faulty.GetTransaction(ctx, old, nil); !errors.Is(err, rpc.ErrNotFound) {
		t.Errorf("the old transaction returns %v, want not found", err)
	}
	found, err := faulty.GetSignaturesForAddress(ctx, address("to"))
	if err != nil || len(found) != 1 || found[0].Signature != recent {
		t.Errorf("signatures of the recipient are %v with error %v, want only the recent one", found, err)
	}
	out := faulty.call("getBlock", `[34]`)
	if out.Error == nil || out.Error.Code != -32001 || !strings.Contains(out.Error.Message, "First available block: "+jsonOf(t, tip-99)) {
		t.Errorf("the old block returns %+v, want error -32001", out)
	}
	if out := faulty.call("getBlocks", `[0,`+jsonOf(t, tip-98)+`]`); string(out.Result) != `[`+jsonOf(t, tip-99)+`,`+jsonOf(t, tip-98)+`]` {
		t.Errorf("blocks from 0 are %s, want the first two of the history", out.Result)
	}
	if !f.landed(old) {
		t.Error("the endpoint without the fault omits the old transaction, too")
	}
}

func TestEndpointsHaveSeparateFaultsAndStatistics(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	before := f.Stats()["getSlot"]
	faulty := f.withFaults(fault.Rule{Method: "getSlot", Status: 500})
	for range 3 {
		if _, err := faulty.tryPost(slotCall, longTimeout); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := f.tryPost(slotCall, longTimeout); err != nil || got.status != http.StatusOK {
		t.Errorf("the default endpoint answers %+v with error %v, want status 200", got, err)
	}
	stats := f.Endpoint("faulty").Stats()
	if stats.Calls["getSlot"] != 3 || stats.Faults["status"] != 3 {
		t.Errorf("statistics are %+v, want 3 calls and 3 faults", stats)
	}
	if stats := f.Endpoint(localnet.DefaultEndpoint).Stats(); stats.Calls["getSlot"] != before+1 || len(stats.Faults) > 0 {
		t.Errorf("statistics of the default endpoint are %+v, want one more call and no faults", stats)
	}
	if got := f.Stats()["getSlot"]; got != before+4 {
		t.Errorf("the chain counts %d calls, want %d", got, before+4)
	}
}

func TestInvalidFaultRulesAreRejected(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	tests := map[string]struct {
		rule fault.Rule
		want string
	}{
		"a method that is not served":    {fault.Rule{Method: "getMoon", Cut: true}, `method is "getMoon"`},
		"a lag beyond the kept versions": {fault.Rule{Lag: 151}, "lag is 151, expected at most 150"},
		"an invalid status":              {fault.Rule{Status: 99}, "status is 99"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := f.Endpoint(name).SetFaults([]fault.Rule{test.rule}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	for _, method := range []string{"sendTransaction", "accountSubscribe", fault.MethodSocket} {
		if err := f.Endpoint("good").SetFaults([]fault.Rule{{Method: method, Latency: 1}}); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
}

func TestSameSeedFailsTheSameCalls(t *testing.T) {
	t.Parallel()
	statuses := func(seed uint64) string {
		f := newFixture(t, localnet.Options{Seed: seed}).withFaults(fault.Rule{Method: "getSlot", Probability: 0.5, Status: 500})
		var out []byte
		for range 40 {
			got, err := f.tryPost(slotCall, longTimeout)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, '0'+byte(got.status/100))
		}
		return string(out)
	}
	if a, b := statuses(1), statuses(1); a != b {
		t.Errorf("the same seed gives different statuses:\n%s\n%s", a, b)
	}
	if a, b := statuses(1), statuses(2); a == b {
		t.Errorf("two seeds give the same statuses %s", a)
	}
}
