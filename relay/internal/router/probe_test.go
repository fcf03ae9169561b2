package router

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/internal/swap"
)

// TestProbeWithoutBudgetReleasesItsPermit: a probe that is not made must release its
// permit, or the breaker would wait for it for ever.
func TestProbeWithoutBudgetReleasesItsPermit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, m, _ := newMemoryClient(t, Options{Take: perSecond(0.1)})
		m.setReply(reply{status: 503})
		for range 5 {
			time.Sleep(11 * time.Second)
			quoteKind(t, c)
		}
		if c.breaker.State() != outbound.Open {
			t.Fatalf("breaker is %s after five failures, want open", c.breaker.State())
		}
		time.Sleep(time.Second)
		m.setReply(reply{body: goodQuote})
		if got := quoteKind(t, c); got != swap.FaultBusy {
			t.Errorf("the probe ends with %s, want busy, because the budget is one request in ten seconds", got)
		}
		time.Sleep(11 * time.Second)
		if got := quoteKind(t, c); got != "ok" || c.breaker.State() != outbound.Closed {
			t.Errorf("the next call ends with %s, and the breaker is %s; want ok and a closed breaker", got, c.breaker.State())
		}
	})
}

// Only swaps call the router, so an open breaker stays open while no swap runs.
func TestFailingExpiresWithoutCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, m, _ := newMemoryClient(t, Options{})
		m.setReply(reply{status: 503})
		for range 5 {
			quoteKind(t, c)
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		if !c.failing() {
			t.Error("a minute after five failures the router does not count as failing")
		}
		time.Sleep(2 * time.Minute)
		if c.breaker.State() != outbound.Open || c.failing() {
			t.Errorf("three minutes after the last call the breaker is %s and failing %t, want open and false", c.breaker.State(), c.failing())
		}
		quoteKind(t, c)
		if !c.failing() {
			t.Error("after another failure the router does not count as failing")
		}
		m.setReply(reply{body: goodQuote})
		time.Sleep(time.Minute)
		if got := quoteKind(t, c); got != "ok" || c.failing() {
			t.Errorf("the next call ends with %s, failing %t, want an answer and false", got, c.failing())
		}
	})
}
