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

// TestTwoRelaysOnOneDatabase: only one relay at a time has a swap, and the chain
// has one execution of each.
func TestTwoRelaysOnOneDatabase(t *testing.T) {
	t.Parallel()
	s := newSwapStand(t, standOptions{slot: slow})
	other := s.startAnother(s.endpointsOf(oneEndpoint))
	other.ready()
	const n = 8
	s.down(fault.Rule{Status: http.StatusServiceUnavailable})
	var swaps []*swapping
	for i := range n {
		w := s.newSwap(nil)
		to := s.stand
		if i%2 == 1 {
			to = other
		}
		w.post(to, "Prefer", "respond-async")
		// The same swap at the other relay is the same swap.
		s.on(other.relay).call(http.MethodPost, "/transact_swap", w.body, "Prefer", "respond-async")
		swaps = append(swaps, w)
	}
	for _, w := range swaps {
		w.shows("funded", "router_unavailable")
	}
	s.honest()
	for _, w := range swaps {
		w.executed()
		if e := w.attempts("execute"); e != 1 {
			t.Errorf("%d executions were signed of one swap", e)
		}
		w.silent()
	}
	if got := s.count("SELECT count(*) FROM submissions"); got != 2*n {
		t.Errorf("there are %d rows of %d swaps", got, n)
	}
	settled := 0.0
	for _, r := range []*stand{s.stand, other} {
		v, _ := r.metric(contract.MetricSwapsEnded, `outcome="executed"`)
		settled += v
	}
	if settled != n {
		t.Errorf("the relays together count %v executed swaps, want %d", settled, n)
	}
	s.books(n * (notesRent + tokenRent))
}

// TestARelayWithoutARouterFinishesSwaps: it refunds them, because no refund must wait
// until the relay has a router.
func TestARelayWithoutARouterFinishesSwaps(t *testing.T) {
	t.Parallel()
	s := newSwapStand(t, standOptions{})
	s.holdBefore()
	w, whole := s.begin(nil), s.newSwap(nil)
	w.shows("funded", "router_hostile")
	s.stop()
	s.again(withoutRouter)
	s.ready()
	wantRefused(t, s.call(http.MethodPost, "/transact_swap", whole.body), http.StatusNotImplemented, "not_available")
	w.refunded(0)
	if n := w.attempts("execute"); n != 0 {
		t.Errorf("%d executions were signed", n)
	}
	s.books(notesRent + stateRent)
}

// TestADeadRelaysSwapIsFinishedByAnother in each phase, with the transactions
// that the dead one signed.
func TestADeadRelaysSwapIsFinishedByAnother(t *testing.T) {
	t.Parallel()
	for name, until := range map[string]func(*swapStand, *swapping){
		"that has not read it": func(s *swapStand, w *swapping) {
			s.down(fault.Rule{Hang: true})
			w.post(w.stand)
			w.shows("funded", "*")
		},
		"that has executed it": func(s *swapStand, w *swapping) {
			s.holdBefore()
			w.post(w.stand)
			w.shows("funded", "router_hostile")
			s.faults("dying", dropped())
			s.honest()
			w.signed("execute", 1)
		},
	} {
		for _, drained := range []bool{false, true} {
			t.Run(fmt.Sprintf("one %s, drained %v", name, drained), func(t *testing.T) {
				t.Parallel()
				database := pgtest.URL(t)
				line, through := newProxy(t, database)
				// The stand's own relay starts later, and takes the swap over.
				s := newSwapStand(t, standOptions{slot: forking, databaseURL: database})
				s.stop()
				endpoints := s.endpointsOf("dying")
				dying := s.startAnother(func(c *config.Serve) {
					endpoints(c)
					c.Database.URLFile = write(t, through)
				})
				dying.ready()
				w := s.newSwap(nil)
				of := *w
				of.swapStand = &swapStand{stand: dying, f: s.f, door: s.door, watch: s.watch}
				until(s, &of)
				w.path, w.leg = of.path, of.leg
				if drained {
					dying.stop()
				} else {
					line.set(true)
					s.faults("dying", fault.Rule{Cut: true})
				}
				s.again()
				s.honest()
				w.executed()
				if e := w.attempts("execute"); e != 1 {
					t.Errorf("%d executions were signed: the heir did not send what was there", e)
				}
				s.books(notesRent + tokenRent)
			})
		}
	}
}

// TestAnOverdueSwapIsReported: empty payers cannot refund, and health, metrics
// and lists say so until they are funded.
func TestAnOverdueSwapIsReported(t *testing.T) {
	t.Parallel()
	s := newSwapStand(t, standOptions{})
	s.down(fault.Rule{Status: http.StatusServiceUnavailable})
	w := s.begin(nil)
	w.shows("funded", "router_unavailable")
	listed := func() store.ListedSwap {
		t.Helper()
		db, err := store.New(s.db)
		must(t, err)
		all, err := db.ListSwaps(t.Context(), 10)
		must(t, err)
		if len(all) != 1 || all[0].ID.String() != w.id() {
			t.Fatalf("the list of swaps is %+v, want the one", all)
		}
		return all[0]
	}
	if l := listed(); l.Phase != submission.PhaseFunded || l.TimeoutSlot == 0 || l.HasEnded() {
		t.Errorf("the swap is listed as %+v", l)
	}
	left := s.lamportsOf(s.payer.PublicKey())
	s.sendAs(s.payer, system.NewTransferInstruction(left-5000, s.payer.PublicKey(), s.stranger().PublicKey()).Build())
	w.skipTo(0)
	s.reportedBy("swaps", "1 swaps are past their timeout", "relay swaps")
	s.reportedBy("fee_payers", "send it funds")
	if a := s.health(); a.status != http.StatusOK || a.body["status"] != "degraded" {
		t.Errorf("health is %d %v, want degraded", a.status, a.body["status"])
	}
	eventually(t, "the swap waits for a payer", func() bool { l := listed(); return l.HeldBy == "fee_payer_empty" && l.Overdue(s.slotNow()) })
	w.shows("funded", "fee_payer_empty")
	// Metrics lag behind the database a little.
	eventually(t, "the metric has one overdue swap", func() bool {
		n, ok := s.metric(contract.MetricSwapsOverdue, "")
		return ok && n == 1
	})
	eventually(t, "the metric has the age of the oldest swap", func() bool {
		funded, ok := s.metric(contract.MetricSwapOldestFunded, "")
		age := telemetry.Timestamp(time.Now()) - funded
		return ok && age > 0 && age < patience.Seconds()
	})
	eventually(t, "the metric has the held swaps", func() bool {
		n, _ := s.metric(contract.MetricHeld, `reason="fee_payer_empty"`)
		return n == 1
	})
	must(t, s.chain.Fund(s.payer.PublicKey(), sol))
	w.refunded(0)
	eventually(t, "nothing is overdue", func() bool { n, ok := s.metric(contract.MetricSwapsOverdue, ""); return ok && n == 0 })
	eventually(t, "health says so no more", func() bool {
		message, _ := s.health().at("checks", "swaps", "message").(string)
		return !strings.Contains(message, "past")
	})
	w.silent()
}

// TestACrowdedRouteHasNothingMadeBeforehand: anybody could collect accounts that are made
// before the execution, so the relay asks for a route with fewer accounts, which has room.
func TestACrowdedRouteHasNothingMadeBeforehand(t *testing.T) {
	t.Parallel()
	s := newSwapStand(t, standOptions{slot: slow})
	s.behave(crowded())
	w := s.begin(nil)
	w.executed()
	if n := w.attempts("execute"); n != 1 {
		t.Errorf("%d executions were signed, want one", n)
	}
	if n := s.count("SELECT count(*) FROM attempts"); n != 2 {
		t.Errorf("%d transactions were signed for the swap, want one for each leg", n)
	}
	s.books(notesRent + tokenRent)
}
