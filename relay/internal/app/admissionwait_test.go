package app

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/internal/config"
)

// rateLimiter is a proxy in front of the only endpoint of a relay. While refuses is true, it
// answers calls with 429 and counts them.
type rateLimiter struct {
	refuses atomic.Bool
	refused atomic.Int64
	next    atomic.Pointer[httputil.ReverseProxy]
}

func (l *rateLimiter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if l.refuses.Load() {
		l.refused.Add(1)
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	l.next.Load().ServeHTTP(w, r)
}

// rateLimitedFixture starts a relay whose only endpoint can limit its rate, and returns the body
// of a withdrawal that the relay can pay.
func rateLimitedFixture(t *testing.T) (*fixture, *rateLimiter, func() map[string]any) {
	t.Helper()
	f, vk := newForger(t)
	l := new(rateLimiter)
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	s := newFixture(t, fixtureOptions{vk: vk, changeConfig: func(c *config.Serve) {
		target, err := url.Parse(c.RPC.URL.Reveal())
		must(t, err)
		l.next.Store(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL = target }})
		c.RPC.URL = config.NewSecret(server.URL)
		c.Wait = c.WaitMax
	}})
	s.waitHealthy()
	f.depositNotes(s)
	return s, l, func() map[string]any {
		to := newKey(t).PublicKey()
		in := f.inputs(s, -sol, to)
		return submissionBody(f.prove(t, in), in.Bytes(), map[string]any{"recipient": to.String()})
	}
}

// send sends a request that may have to wait, and returns the channel of its answer. The channel is
// closed without an answer if the call fails.
func (s *fixture) send(body any, header ...string) <-chan *answer {
	answered := make(chan *answer, 1)
	go func() {
		defer close(answered)
		answered <- s.call(http.MethodPost, "/transact", body, header...)
	}()
	return answered
}

// waitUntilOneWaits returns once a request waits for the chain.
func (s *fixture) waitUntilOneWaits() {
	s.t.Helper()
	eventually(s.t, "the gauge of waiting clients is 1", s.oneWaits)
}

func (s *fixture) oneWaits() bool {
	n, _ := s.metric(contract.MetricWaiting, "")
	return n == 1
}

// Six refusals in a row open the breaker of the only endpoint for longer than a read waits. A
// client that waits is not answered 503 for that, and its proof is verified once.
func TestASendOutlastsSixRateLimits(t *testing.T) {
	t.Parallel()
	s, l, withdrawal := rateLimitedFixture(t)
	body := withdrawal()
	l.refuses.Store(true)
	answered := s.send(body)
	s.waitUntilOneWaits()
	eventually(t, "six calls are refused", func() bool { return l.refused.Load() >= 6 })
	l.refuses.Store(false)
	a := <-answered
	if a == nil || a.status != http.StatusOK {
		t.Fatalf("the withdrawal is answered %+v, want 200", a)
	}
	verified := contract.MetricStages
	verified.Name += "_count"
	if n, _ := s.metric(verified, `stage="verify"`); n != 1 {
		t.Errorf("%v proofs were verified, want 1", n)
	}
}

// A client that does not wait is answered at once, which is before one that came earlier and
// waits; and so is a request that no wait helps.
func TestWhoDoesNotWaitForTheChain(t *testing.T) {
	t.Parallel()
	s, l, withdrawal := rateLimitedFixture(t)
	body, invalid := withdrawal(), withdrawal()
	invalid["recipient"] = solana.SystemProgramID.String()
	l.refuses.Store(true)
	answered := s.send(withdrawal())
	s.waitUntilOneWaits()
	wantRefused(t, s.call(http.MethodPost, "/transact", body, "Prefer", "respond-async"), 503, "chain_unavailable")
	wantRefused(t, s.call(http.MethodPost, "/transact", body, "Prefer", "wait=0"), 503, "chain_unavailable")
	wantRefused(t, s.call(http.MethodPost, "/withdraw", body), 503, "chain_unavailable")
	if a := s.call(http.MethodPost, "/transact", invalid); a.status != http.StatusBadRequest {
		t.Errorf("an invalid withdrawal is answered %d %v, want 400", a.status, a.body)
	}
	if !s.oneWaits() {
		t.Error("the client that waits was answered before those that do not")
	}
	l.refuses.Store(false)
	if a := <-answered; a == nil || a.status != http.StatusOK {
		t.Errorf("the client that waits is answered %+v, want 200", a)
	}
}

// A shutdown has 20 s for its clients, and this one would wait for 30 s.
func TestAShutdownEndsTheWaitForTheChain(t *testing.T) {
	t.Parallel()
	s, l, withdrawal := rateLimitedFixture(t)
	body := withdrawal()
	l.refuses.Store(true)
	answered := s.send(body)
	s.waitUntilOneWaits()
	s.stop()
	a := <-answered
	if a == nil {
		t.Fatal("the client got no answer")
	}
	wantRefused(t, a, 503, "chain_unavailable")
}
