package app

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go/programs/system"

	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/internal/pgtest"
	"github.com/relaypool/relaypool/relay/internal/store"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/telemetry"
)

// Only one relay at a time has the lease of a swap, and the chain has one execution of
// each swap.
func TestTwoRelaysExecuteEachSwapOnce(t *testing.T) {
	t.Parallel()
	s := newSwapFixture(t, fixtureOptions{slotDuration: slowSlot})
	other := s.startAnother(s.endpointsOf(relayEndpoint))
	other.waitHealthy()
	const n = 8
	s.failRouter(fault.Rule{Status: http.StatusServiceUnavailable})
	var swaps []*testSwap
	for i := range n {
		w := s.newSwap(nil)
		to := s.fixture
		if i%2 == 1 {
			to = other
		}
		w.submit(to, "Prefer", "respond-async")
		// The same request at the other relay is the same submission.
		s.withRelay(other.relay).call(http.MethodPost, "/transact_swap", w.body, "Prefer", "respond-async")
		swaps = append(swaps, w)
	}
	for _, w := range swaps {
		w.waitPhase("funded", "router_unavailable")
	}
	s.resetRouter()
	for _, w := range swaps {
		w.waitExecuted()
		if e := w.attempts("execute"); e != 1 {
			t.Errorf("%d executions were signed of one swap, want 1", e)
		}
		w.checkNothingLogged()
	}
	if got := s.queryInt("SELECT count(*) FROM submissions"); got != 2*n {
		t.Errorf("%d submissions are stored, want 2 for each of %d swaps", got, n)
	}
	executed := 0.0
	for _, r := range []*fixture{s.fixture, other} {
		v, _ := r.metric(contract.MetricSwapsEnded, `outcome="executed"`)
		executed += v
	}
	if executed != n {
		t.Errorf("the relays together count %v executed swaps, want %d", executed, n)
	}
	s.checkAccounting(n * (notesRent + tokenRent))
}

// A refund must not wait until the relay has a router.
func TestARelayWithoutARouterRefundsSwaps(t *testing.T) {
	t.Parallel()
	s := newSwapFixture(t, fixtureOptions{})
	s.makeRoutesInvalid()
	w, newSwap := s.submitSwap(nil), s.newSwap(nil)
	w.waitPhase("funded", "router_hostile")
	s.stop()
	s.startRelay(withoutRouter)
	s.waitHealthy()
	wantRefused(t, s.call(http.MethodPost, "/transact_swap", newSwap.body), http.StatusNotImplemented, "not_available")
	w.waitRefunded(0)
	if n := w.attempts("execute"); n != 0 {
		t.Errorf("%d executions were signed, want 0", n)
	}
	s.checkAccounting(notesRent + stateRent)
}

// A relay dies or is drained in each phase of a swap. Another relay finishes the swap with
// the transactions that the first relay signed.
func TestADeadRelaysSwapIsFinishedByAnother(t *testing.T) {
	t.Parallel()
	for name, until := range map[string]func(*swapFixture, *testSwap){
		"waiting for the router": func(s *swapFixture, w *testSwap) {
			s.failRouter(fault.Rule{Hang: true})
			w.submit(w.fixture)
			w.waitPhase("funded", "*")
		},
		"execution signed": func(s *swapFixture, w *testSwap) {
			s.makeRoutesInvalid()
			w.submit(w.fixture)
			w.waitPhase("funded", "router_hostile")
			s.setFaults("dying", droppedSend())
			s.resetRouter()
			w.waitSigned("execute", 1)
		},
	} {
		for _, drained := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, drained %v", name, drained), func(t *testing.T) {
				t.Parallel()
				database := pgtest.URL(t)
				proxy, proxiedURL := newDatabaseProxy(t, database)
				// The fixture's own relay starts later and takes the swap over.
				s := newSwapFixture(t, fixtureOptions{slotDuration: forkSlot, databaseURL: database})
				s.stop()
				endpoints := s.endpointsOf("dying")
				dying := s.startAnother(func(c *config.Serve) {
					endpoints(c)
					c.Database.URLFile = writeTempFile(t, proxiedURL)
				})
				dying.waitHealthy()
				w := s.newSwap(nil)
				dyingSwap := *w
				dyingSwap.swapFixture = &swapFixture{fixture: dying, forger: s.forger, routerProxy: s.routerProxy, directRPC: s.directRPC}
				until(s, &dyingSwap)
				w.statusPath, w.firstSignature = dyingSwap.statusPath, dyingSwap.firstSignature
				if drained {
					dying.stop()
				} else {
					proxy.setCut(true)
					s.setFaults("dying", fault.Rule{Cut: true})
				}
				s.startRelay()
				s.resetRouter()
				w.waitExecuted()
				if e := w.attempts("execute"); e != 1 {
					t.Errorf("%d executions were signed, want 1: the new owner sends the existing one", e)
				}
				s.checkAccounting(notesRent + tokenRent)
			})
		}
	}
}

// A payer without funds cannot refund a swap. Health, metrics and the list of swaps report
// it until the payer is funded.
func TestAnOverdueSwapIsReported(t *testing.T) {
	t.Parallel()
	s := newSwapFixture(t, fixtureOptions{})
	s.failRouter(fault.Rule{Status: http.StatusServiceUnavailable})
	w := s.submitSwap(nil)
	w.waitPhase("funded", "router_unavailable")
	listed := func() store.ListedSwap {
		t.Helper()
		db, err := store.New(s.db)
		must(t, err)
		all, err := db.ListSwaps(t.Context(), 10)
		must(t, err)
		if len(all) != 1 || all[0].ID.String() != w.id() {
			t.Fatalf("the list of swaps is %+v, want only swap %s", all, w.id())
		}
		return all[0]
	}
	if l := listed(); l.Phase != submission.PhaseFunded || l.TimeoutSlot == 0 || l.HasEnded() {
		t.Errorf("the swap is listed as %+v, want it funded with a timeout slot", l)
	}
	left := s.lamportsOf(s.payer.PublicKey())
	s.sendAs(s.payer, system.NewTransferInstruction(left-5000, s.payer.PublicKey(), s.stranger().PublicKey()).Build())
	w.skipTo(0)
	s.waitHealthReport("swaps", "1 swaps are past their timeout", "relay swaps")
	s.waitHealthReport("fee_payers", "send it funds")
	if a := s.health(); a.status != http.StatusOK || a.body["status"] != "degraded" {
		t.Errorf("health is %d %v, want degraded", a.status, a.body["status"])
	}
	eventually(t, "the swap waits for a payer", func() bool { l := listed(); return l.HeldBy == "fee_payer_empty" && l.Overdue(s.currentSlot()) })
	w.waitPhase("funded", "fee_payer_empty")
	// The metrics are up to two seconds behind the database.
	eventually(t, "the metric has one overdue swap", func() bool {
		n, ok := s.metric(contract.MetricSwapsOverdue, "")
		return ok && n == 1
	})
	eventually(t, "the metric has the age of the oldest swap", func() bool {
		funded, ok := s.metric(contract.MetricSwapOldestFunded, "")
		age := telemetry.Timestamp(time.Now()) - funded
		return ok && age > 0 && age < waitTimeout.Seconds()
	})
	eventually(t, "the metric has the held swaps", func() bool {
		n, _ := s.metric(contract.MetricHeld, `reason="fee_payer_empty"`)
		return n == 1
	})
	must(t, s.chain.Fund(s.payer.PublicKey(), sol))
	w.waitRefunded(0)
	eventually(t, "nothing is overdue", func() bool { n, ok := s.metric(contract.MetricSwapsOverdue, ""); return ok && n == 0 })
	eventually(t, "health no longer reports the swap", func() bool {
		message, _ := s.health().at("checks", "swaps", "message").(string)
		return !strings.Contains(message, "past")
	})
	w.checkNothingLogged()
}

// Accounts that were created before the execution could be taken by anybody, so the
// execution creates them. The relay asks for a route with fewer accounts, which leaves room.
func TestALargeRouteIsRequestedAgainWithFewerAccounts(t *testing.T) {
	t.Parallel()
	s := newSwapFixture(t, fixtureOptions{slotDuration: slowSlot})
	s.setRouter(largeRoutes())
	w := s.submitSwap(nil)
	w.waitExecuted()
	if n := w.attempts("execute"); n != 1 {
		t.Errorf("%d executions were signed, want one", n)
	}
	if n := s.queryInt("SELECT count(*) FROM attempts"); n != 2 {
		t.Errorf("%d transactions were signed for the swap, want one for each leg", n)
	}
	s.checkAccounting(notesRent + tokenRent)
}
