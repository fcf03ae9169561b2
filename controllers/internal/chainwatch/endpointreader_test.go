package chainwatch

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/relay/poolcheck"
	"github.com/relaypool/relaypool/relay/rpc"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	testTimeout = 2 * time.Minute
	canary      = "c4n4ryc4n4ry"
)

// chain starts a local chain, and returns it with its pool's target.
func chain(t *testing.T, o localnet.Options) (*localnet.Chain, poolcheck.Target) {
	t.Helper()
	var err error
	if o.VerifyingKey, err = os.ReadFile("../../../hack/circuit/verification_key.json"); err != nil {
		t.Fatal(err)
	}
	key, err := poolcheck.ParseKey(o.VerifyingKey)
	if err != nil {
		t.Fatal(err)
	}
	c, err := localnet.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c, poolcheck.Target{Profile: shieldpool.Development(), Genesis: localnet.GenesisHash, Key: key}
}

// listen returns the URL of one of the chain's endpoints, with a secret path.
func listen(t *testing.T, c *localnet.Chain, name string) string {
	t.Helper()
	url, err := c.ListenEndpoint(name, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return url + "/" + canary
}

func endpoint(name, url string) Endpoint {
	return Endpoint{Name: name, Identity: name, URL: func(context.Context) (string, error) { return url, nil }}
}

// start starts a watcher with network access, and counts its events.
func start(t *testing.T, o Options) (w *Watcher, events func() int) {
	t.Helper()
	client := rpc.NewHTTPClient()
	o.HTTP, o.Now, o.Random = client, time.Now, func() float64 { return 0.5 }
	w, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	received, stop, done := make(chan struct{}, 10_000), make(chan struct{}), make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				close(done)
				return
			case <-w.Events():
				received <- struct{}{}
			}
		}
	}()
	go func() {
		if err := w.Start(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		w.Close()
		close(stop)
		<-done
		client.CloseIdleConnections()
	})
	return w, func() int { return len(received) }
}

func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(testTimeout); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", testTimeout, what)
		}
	}
}

// pool returns what the condition of a RelayPool says.
func (w *Watcher) pool(i int) (state poolcheck.State, reason poolcheck.Reason, message string) {
	r, _ := w.Reading(poolKey(i))
	return r.PoolState()
}

func TestALocalChainIsReadBeforeAndAfterItIsInitialised(t *testing.T) {
	t.Parallel()
	c, target := chain(t, localnet.Options{})
	w, events := start(t, Options{})
	key, err := solana.NewRandomPrivateKey()
	if err != nil {
		t.Fatal(err)
	}
	w.Set(poolKey(0), Query{Target: target, Endpoints: []Endpoint{endpoint("local", listen(t, c, "default"))}, Interval: 20 * time.Millisecond, Payers: []solana.PublicKey{key.PublicKey()}})
	until(t, "the pool is reported missing", func() bool { _, reason, _ := w.pool(0); return reason == poolcheck.ReasonAccountMissing })
	if _, _, message := w.pool(0); !strings.Contains(message, "initialise the pool") || strings.Contains(message, canary) {
		t.Errorf("got %q, want what to do and no URL", message)
	}
	r, _ := w.Reading(poolKey(0))
	if p, ok := r.Payers[key.PublicKey()]; !ok || p.Lamports != 0 {
		t.Errorf("got payer %+v, want a known balance of 0", p)
	}

	if err := c.Initialize(); err != nil {
		t.Fatal(err)
	}
	if err := c.Fund(key.PublicKey(), 3_000_000_000); err != nil {
		t.Fatal(err)
	}
	c.Finalize()
	until(t, "the pool is initialised and the payer funded", func() bool {
		state, _, _ := w.pool(0)
		r, _ := w.Reading(poolKey(0))
		return state == poolcheck.OK && r.Payers[key.PublicKey()].Lamports == 3_000_000_000
	})
	r, _ = w.Reading(poolKey(0))
	if next, ok := r.Report.NextIndex(); !ok || next != 0 {
		t.Errorf("got %d leaves, %v, want an empty tree", next, ok)
	}
	// The event of the last change may arrive late.
	received, calls := -1, uint64(0)
	until(t, "twenty checks of a chain on which nothing happens were made without an event", func() bool {
		made := c.Stats()["getMultipleAccounts"]
		if now := events(); now != received {
			received, calls = now, made
		}
		return made > calls+20
	})
	if n := c.Stats()["getGenesisHash"]; n != 1 {
		t.Errorf("got %d calls for the genesis hash, want one", n)
	}
}

func TestFinalizedQueryReadsFinalizedBalances(t *testing.T) {
	t.Parallel()
	c, target := chain(t, localnet.Options{Initialised: true})
	w, _ := start(t, Options{})
	url, q := listen(t, c, "default"), Query{Target: target, Interval: 20 * time.Millisecond, Payers: []solana.PublicKey{{9}}}
	q.Endpoints = []Endpoint{endpoint("local", url)}
	w.Set(poolKey(0), q)
	q.Finalized = true
	w.Set(poolKey(1), q)
	if err := c.Fund(solana.PublicKey{9}, 1_000_000_000); err != nil {
		t.Fatal(err)
	}
	c.Advance(4) // confirmed, and far from finalized
	lamports := func(i int) uint64 { r, _ := w.Reading(poolKey(i)); return r.Payers[solana.PublicKey{9}].Lamports }
	until(t, "the confirmed balance is read", func() bool { return lamports(0) == 1_000_000_000 })
	calls := c.Stats()["getMultipleAccounts"]
	until(t, "both were read again", func() bool { return c.Stats()["getMultipleAccounts"] > calls+10 })
	if got := lamports(1); got != 0 {
		t.Errorf("got %d lamports at finalized, want none yet", got)
	}
	c.Finalize()
	until(t, "the finalized balance is read", func() bool { return lamports(1) == 1_000_000_000 })
}

func TestAnotherEndpointReplacesAFaultyOne(t *testing.T) {
	t.Parallel()
	c, target := chain(t, localnet.Options{Initialised: true})
	w, _ := start(t, Options{Timeout: 3 * time.Second, Workers: 32}) // one hangs, and on a busy machine the others answer slowly
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	answer := func(status int, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = fmt.Fprint(w, body)
		}))
		t.Cleanup(s.Close)
		return s.URL + "/" + canary
	}
	tests := []struct {
		name, url, want string
		faults          []fault.Rule
	}{
		{name: "limited", faults: []fault.Rule{{Status: 429}}, want: "rate_limited: HTTP 429"},
		{name: "failing", faults: []fault.Rule{{Status: 503}}, want: "server_error: HTTP 503"},
		{name: "hanging", faults: []fault.Rule{{Hang: true}}, want: "unavailable: timeout"},
		{name: "cutting", faults: []fault.Rule{{Cut: true}}, want: "unavailable: connection"},
		{name: "refusing", faults: []fault.Rule{{Error: fault.Error{Code: -32005, Message: canary}}}, want: "node_behind: code -32005"},
		{name: "empty", faults: []fault.Rule{{Method: "getMultipleAccounts", Empty: true}}, want: "the endpoint's state is incomplete"},
		{name: "garbage", url: answer(200, "<html>"+canary), want: "is not JSON-RPC"},
		{name: "nothing", url: answer(200, ""), want: "is not JSON-RPC"},
		{name: "another-shape", url: answer(200, `{"jsonrpc":"2.0","id":1,"result":{"`+canary+`":1}}`), want: "is not what the method answers"},
		{name: "forbidden", url: answer(403, canary), want: "rejected: HTTP 403: check the RPC URL and its credentials"},
		{name: "redirecting", url: answer(302, ""), want: "rejected: HTTP 302"},
		{name: "down", url: dead.URL + "/" + canary, want: "connection refused"},
		{name: "no-url", url: "postgres://" + canary, want: "RPC URL of 23 bytes is not usable: expected http:// or https:// and a host"},
	}
	good := endpoint("good", listen(t, c, "good"))
	for i, test := range tests {
		url := test.url
		if url == "" {
			url = listen(t, c, test.name)
			if err := c.Endpoint(test.name).SetFaults(test.faults); err != nil {
				t.Fatal(err)
			}
		}
		q := Query{Target: target, Interval: 50 * time.Millisecond, Endpoints: []Endpoint{endpoint(test.name, url)}}
		w.Set(poolKey(i), q)
		q.Endpoints = append(q.Endpoints, good)
		w.Set(poolKey(100+i), q)
	}
	for i, test := range tests {
		// On a busy machine, any endpoint may fail to answer in time, so several messages
		// may appear.
		var seen string
		until(t, "the endpoint "+test.name+", alone, is reported as: "+test.want, func() bool {
			state, reason, message := w.pool(i)
			seen += message + "\n"
			return state == poolcheck.Unknown && reason == poolcheck.ReasonChainUnavailable && strings.Contains(message, "endpoint "+test.name+": ") &&
				strings.Contains(message, test.want)
		})
		if strings.Contains(seen, canary) || strings.Contains(seen, "127.0.0.1") {
			t.Errorf("%s: a message contains the URL or the answer: %q", test.name, seen)
		}
		until(t, "another endpoint replaces "+test.name, func() bool { state, _, _ := w.pool(100 + i); return state == poolcheck.OK })
	}
	// Their faults come from real calls.
	for _, name := range []string{"hanging", "limited"} {
		if n := c.Endpoint(name).Stats().Calls["getGenesisHash"]; n == 0 {
			t.Errorf("the endpoint %s was never asked", name)
		}
	}
}

func TestManyPoolsAreReadWhileOneEndpointHangs(t *testing.T) {
	t.Parallel()
	c, target := chain(t, localnet.Options{Initialised: true})
	w, _ := start(t, Options{Workers: 4, Timeout: time.Second})
	good, hanging := endpoint("good", listen(t, c, "good")), endpoint("hanging", listen(t, c, "hanging"))
	if err := c.Endpoint("hanging").SetFaults([]fault.Rule{{Hang: true}}); err != nil {
		t.Fatal(err)
	}
	const pools = 60
	for i := range pools {
		w.Set(poolKey(i), Query{Target: target, Interval: 100 * time.Millisecond, Endpoints: []Endpoint{good}})
	}
	until(t, "every pool was read", func() bool {
		for i := range pools {
			if state, _, _ := w.pool(i); state != poolcheck.OK {
				return false
			}
		}
		return true
	})
	for i := pools; i < 20*pools; i++ { // five minutes' worth of timeouts, longer than until waits
		w.Set(poolKey(i), Query{Target: target, Interval: 100 * time.Millisecond, Endpoints: []Endpoint{hanging}})
	}
	began := time.Now()
	until(t, "every pool was read again", func() bool {
		for i := range pools {
			if r, _ := w.Reading(poolKey(i)); !r.At.After(began) {
				return false
			}
		}
		return true
	})
}

func TestReasonsMatchTheCondition(t *testing.T) {
	t.Parallel()
	for reason, conditionReason := range map[poolcheck.Reason]string{
		poolcheck.ReasonInitialised:             v1alpha1.ReasonInitialised,
		poolcheck.ReasonNotChecked:              v1alpha1.ReasonNotChecked,
		poolcheck.ReasonChainUnavailable:        v1alpha1.ReasonChainUnavailable,
		poolcheck.ReasonConfigurationIncomplete: v1alpha1.ReasonConfigurationIncomplete,
		poolcheck.ReasonWrongCluster:            v1alpha1.ReasonWrongCluster,
		poolcheck.ReasonProgramMissing:          v1alpha1.ReasonProgramMissing,
		poolcheck.ReasonAccountMissing:          v1alpha1.ReasonAccountMissing,
		poolcheck.ReasonAccountForeign:          v1alpha1.ReasonAccountForeign,
		poolcheck.ReasonTreeMismatch:            v1alpha1.ReasonTreeMismatch,
		poolcheck.ReasonTreeFull:                v1alpha1.ReasonTreeFull,
		poolcheck.ReasonMintUnknown:             v1alpha1.ReasonMintUnknown,
		poolcheck.ReasonVerifyingKeyUnfit:       v1alpha1.ReasonVerifyingKeyUnfit,
	} {
		if string(reason) != conditionReason {
			t.Errorf("poolcheck has the reason %s, and the condition has %s; want the same", reason, conditionReason)
		}
	}
}

func TestNoPrintingShowsAURL(t *testing.T) {
	t.Parallel()
	url := "http://" + canary + ":" + canary + "@127.0.0.1:1/" + canary
	r, err := dial(rpc.NewHTTPClient(), url, "", false, time.Now, 0)
	if err != nil {
		t.Fatal(err)
	}
	q := Query{Endpoints: []Endpoint{endpoint("a", url)}}
	w, err := New(Options{HTTP: rpc.NewHTTPClient(), Now: time.Now, Random: func() float64 { return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	w.Set(poolKey(0), q)
	_, genesisErr := r.GenesisHash(t.Context())
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb+verb+verb+verb, r, q, w.pools[poolKey(0)], genesisErr); strings.Contains(text, canary) {
			t.Errorf("%s shows the URL: %s", verb, text)
		}
	}
}
