package router

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/internal/swap"
)

// TestAProbeWithoutABudgetIsLeftToTheNextCall: a probe that is not made must release its
// permit, or the breaker would wait for it for ever.
func TestAProbeWithoutABudgetIsLeftToTheNextCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, m, _ := inMemory(t, Options{RequestsPerSecond: 0.1})
		m.says(reply{status: 503})
		for range 5 {
			time.Sleep(11 * time.Second)
			quoteKind(t, c)
		}
		if c.Breaker() != outbound.Open {
			t.Fatalf("breaker is %s after five failures, want open", c.Breaker())
		}
		time.Sleep(time.Second)
		m.says(reply{body: goodQuote})
		if got := quoteKind(t, c); got != swap.FaultBusy {
			t.Errorf("the probe ends with %s, want busy: there is a request in ten seconds", got)
		}
		time.Sleep(11 * time.Second)
		if got := quoteKind(t, c); got != "ok" || c.Breaker() != outbound.Closed {
			t.Errorf("the next call ends with %s, and the breaker is %s, want an answer and a closed one", got, c.Breaker())
		}
	})
}
