package app

import (
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/hack/localnet/market"
	"github.com/relaypool/relaypool/hack/localnet/router"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// badRouter is one way in which a router is useless.
type badRouter struct {
	settings router.Settings
	// aboveMarket asks for more than the market's output.
	aboveMarket bool
	// holdReasons are the reasons for which the swap may wait, and hostile is the counted fault.
	holdReasons  []string
	rejectReason string
}

func withLie(lie router.Lie, call string) router.Settings {
	return router.Settings{Lies: []router.LieRule{{Lie: lie, Call: call}}}
}

func withFault(rule fault.Rule) router.Settings { return router.Settings{Faults: []fault.Rule{rule}} }

// invalidRouteRouters quote well, and their routes must not be signed.
func invalidRouteRouters(payer solana.PublicKey) map[string]badRouter {
	const instructions = router.CallInstructions
	naming := func(lie router.Lie) router.Settings {
		return router.Settings{Lies: []router.LieRule{{Lie: lie, Account: payer}}}
	}
	only := []string{"router_hostile"}
	fails := []string{"swap_execution_failed"}
	return map[string]badRouter{
		"quotes another mint":        {settings: withLie(router.WrongMint, ""), holdReasons: only, rejectReason: "output_mint"},
		"quotes another amount":      {settings: withLie(router.WrongAmount, ""), holdReasons: only, rejectReason: "amount"},
		"quotes twice what it has":   {settings: withLie(router.LowThreshold, ""), aboveMarket: true, holdReasons: fails},
		"calls another program":      {settings: withLie(router.WrongProgram, ""), holdReasons: only, rejectReason: "program"},
		"has the payer sign":         {settings: naming(router.PayerAccount), holdReasons: only, rejectReason: "signer"},
		"writes the payer's account": {settings: naming(router.PayerWritable), holdReasons: only, rejectReason: "account"},
		"wants another signature":    {settings: withLie(router.ExtraSigner, ""), holdReasons: only, rejectReason: "signer"},
		"swaps for another user":     {settings: withLie(router.OtherUser, ""), holdReasons: only, rejectReason: "signer"},
		"keeps half of the output":   {settings: withLie(router.ShortOutput, ""), holdReasons: fails},
		"takes half of the input":    {settings: withLie(router.PartialFill, ""), holdReasons: fails},
		"names a table that is none": {settings: withLie(router.BogusTable, ""), holdReasons: only, rejectReason: "lookup_table"},
		"names an account for table": {settings: withLie(router.ForeignTable, ""), holdReasons: only, rejectReason: "lookup_table"},
		"gives no instructions":      {settings: withFault(fault.Rule{Method: instructions, Status: http.StatusInternalServerError}), holdReasons: []string{"router_unavailable"}},
	}
}

// brokenRouters do not answer, or their answers are not those of a router.
func brokenRouters() map[string]badRouter {
	waits := []string{"router_unavailable"}
	return map[string]badRouter{
		"answers 503":               {settings: withFault(fault.Rule{Status: http.StatusServiceUnavailable}), holdReasons: waits},
		"limits the rate":           {settings: withFault(fault.Rule{Status: http.StatusTooManyRequests, RetryAfter: time.Second}), holdReasons: waits},
		"closes the connection":     {settings: withFault(fault.Rule{Cut: true}), holdReasons: waits},
		"hangs":                     {settings: withFault(fault.Rule{Hang: true}), holdReasons: waits},
		"is too slow":               {settings: withFault(fault.Rule{Latency: 3 * time.Second}), holdReasons: waits},
		"answers with a page":       {settings: withLie(router.Garbage, ""), holdReasons: waits},
		"breaks off":                {settings: withLie(router.Truncated, ""), holdReasons: waits},
		"answers with too much":     {settings: withLie(router.Huge, ""), holdReasons: waits},
		"gives a price and a page":  {settings: withLie(router.Garbage, router.CallInstructions), holdReasons: waits},
		"gives a price, breaks off": {settings: withLie(router.Truncated, router.CallInstructions), holdReasons: waits},
	}
}

// submitSwaps starts a swap with each router.
func (s *swapFixture) submitSwaps(all map[string]badRouter) map[string]*testSwap {
	s.t.Helper()
	swaps, treatment := map[string]*testSwap{}, map[uint64]router.Settings{}
	gross := uint64(swapGross)
	for name, bad := range all {
		gross += 1_000_000
		w := s.newSwap(func(w *testSwap) {
			w.gross = gross
			if bad.aboveMarket {
				w.call.Swap.MinOutput = s.marketOutput(gross) / 2 * 3
			}
		})
		swaps[name], treatment[w.net] = w, bad.settings
	}
	s.routerProxy.setByAmount(treatment)
	for _, w := range swaps {
		w.submit(s.fixture, "Prefer", "respond-async")
	}
	return swaps
}

// refundRent is the cost of refunds for the payers, in lamports: the states' rents go to
// the recipient. No account is made in vain.
func refundRent(all map[string]badRouter) uint64 { return uint64(len(all)) * (notesRent + stateRent) }

// resetRouter makes all of them honest from now on.
func (s *swapFixture) resetRouter() {
	s.t.Helper()
	s.routerProxy.setByAmount(nil)
	s.setRouter(router.Settings{})
}

// TestARouterThatFailsUntilTheTimeoutLeadsToRefunds: however it fails, all lamports are refunded, and
// none of its invalid routes is signed.
func TestARouterThatFailsUntilTheTimeoutLeadsToRefunds(t *testing.T) {
	t.Parallel()
	for name, all := range map[string]func(*swapFixture) map[string]badRouter{
		"hostile": func(s *swapFixture) map[string]badRouter { return invalidRouteRouters(s.payer.PublicKey()) },
		"broken":  func(*swapFixture) map[string]badRouter { return brokenRouters() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSwapFixture(t, fixtureOptions{})
			routers := all(s)
			swaps := s.submitSwaps(routers)
			for name, w := range swaps {
				eventually(t, "the swap with a router that "+name+" waits", func() bool {
					got, _ := w.status().at("data", "swap_waits").(string)
					return slices.Contains(routers[name].holdReasons, got)
				})
			}
			for name, w := range swaps {
				t.Log(name)
				w.waitRefunded(0)
				if n := w.attempts("execute"); n != 0 {
					t.Errorf("a router that %s has had %d transactions signed", name, n)
				}
				w.checkNothingLogged()
			}
			for name, bad := range routers {
				if n, _ := s.metric(contract.MetricRouterRejected, `what="`+bad.rejectReason+`"`); bad.rejectReason != "" && n == 0 {
					t.Errorf("no metric counts a router that %s", name)
				}
				for _, reason := range bad.holdReasons {
					if n, _ := s.metric(contract.MetricSwapWaits, `reason="`+reason+`"`); n == 0 {
						t.Errorf("no metric counts the waits for %s", reason)
					}
				}
			}
			if n, _ := s.metric(contract.MetricSwapsEnded, `outcome="refunded"`); n != float64(len(routers)) {
				t.Errorf("the metric has %v refunds, want %d", n, len(routers))
			}
			s.checkAccounting(refundRent(routers))
		})
	}
}

// TestSwapsAreExecutedAfterTheRouterRecovers: the same routers, honest before the timeout.
func TestSwapsAreExecutedAfterTheRouterRecovers(t *testing.T) {
	t.Parallel()
	for name, all := range map[string]func(*swapFixture) map[string]badRouter{
		"hostile": func(s *swapFixture) map[string]badRouter { return invalidRouteRouters(s.payer.PublicKey()) },
		"broken":  func(*swapFixture) map[string]badRouter { return brokenRouters() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSwapFixture(t, fixtureOptions{slotDuration: slowSlot})
			routers := all(s)
			delete(routers, "quotes twice what it has") // honest, it has no such price
			swaps := s.submitSwaps(routers)
			for name, w := range swaps {
				var got string
				eventually(t, "the swap with a router that "+name+" waits", func() bool {
					got, _ = w.status().at("data", "swap_waits").(string)
					return got != ""
				})
				if !slices.Contains(routers[name].holdReasons, got) && got != "router_unavailable" {
					t.Errorf("with a router that %s the swap waits for %s", name, got)
				}
			}
			s.resetRouter()
			for name, w := range swaps {
				t.Log(name)
				w.waitExecuted()
				if n := w.attempts("execute"); n != 1 {
					t.Errorf("with a router that %s %d executions were signed", name, n)
				}
				w.checkNothingLogged()
			}
			s.checkAccounting(uint64(len(swaps)) * (notesRent + tokenRent))
		})
	}
}

// TestASwapWaitsForItsPrice: the price falls and recovers, and the router's quotes with it.
func TestASwapWaitsForItsPrice(t *testing.T) {
	t.Parallel()
	s := newSwapFixture(t, fixtureOptions{slotDuration: slowSlot})
	w := s.newSwap(nil)
	s.setPrice(90)
	w.submit(s.fixture)
	w.waitPhase("funded", "swap_price")
	s.setRouter(withFault(fault.Rule{Method: router.CallInstructions, Status: http.StatusServiceUnavailable}))
	s.setPrice(100)
	w.waitPhase("funded", "router_unavailable")
	s.setPrice(90)
	s.resetRouter()
	w.waitPhase("funded", "swap_price")
	s.setPrice(101)
	want := s.marketOutput(w.net)
	w.waitExecuted()
	if got := s.tokensOf(w.call.Swap.RecipientATA); got != want {
		t.Errorf("the recipient got %d tokens, want the %d of the better price", got, want)
	}
	s.checkAccounting(notesRent + tokenRent)
}

// TestATightPriceIsExecuted: the market's output is above the minimum by
// less than the usual slippage.
func TestATightPriceIsExecuted(t *testing.T) {
	t.Parallel()
	s := newSwapFixture(t, fixtureOptions{})
	for name, short := range map[string]uint64{"to the last unit": 0, "with a little room": 40_000} {
		w := s.submitSwap(func(w *testSwap) {
			net, _ := s.pool.Profile.Fees.Net(w.gross)
			w.call.Swap.MinOutput = s.marketOutput(net) - short
		})
		t.Log(name)
		w.waitExecuted()
	}
	s.checkAccounting(2 * (notesRent + tokenRent))
}

// TestSmallerRoutesAreRequestedUntilOneFits: the relay requests routes again with fewer accounts, then direct
// ones. A router that has none ends in a refund.
func TestSmallerRoutesAreRequestedUntilOneFits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ignore []string // of the question
		wide   router.Settings
		fits   bool
	}{
		"with fewer accounts":        {nil, router.Settings{Wide: 50, Outside: true}, true},
		"with fewer, by their count": {nil, router.Settings{Wide: 120}, true},
		"only as a direct one":       {[]string{"maxAccounts"}, router.Settings{Wide: 50, Outside: true}, true},
		"not at all":                 {[]string{"maxAccounts", "onlyDirectRoutes"}, router.Settings{Wide: 50, Outside: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSwapFixture(t, fixtureOptions{})
			s.setRouter(tt.wide)
			direct := false
			s.routerProxy.setHook(func(_ string, query url.Values) {
				direct = direct || query.Get("onlyDirectRoutes") == "true"
				for _, name := range tt.ignore {
					query.Del(name)
				}
			})
			w := s.submitSwap(nil)
			if tt.fits {
				w.waitExecuted()
				if n := w.attempts("execute"); n != 1 {
					t.Errorf("%d executions were signed", n)
				}
				s.checkAccounting(notesRent + tokenRent)
			} else {
				w.waitPhase("funded", "swap_route_too_large")
				w.waitRefunded(0)
				s.checkAccounting(notesRent + stateRent)
			}
			s.routerProxy.setHook(nil)
			if wantDirect := len(tt.ignore) > 0; direct != wantDirect {
				t.Errorf("a direct route was asked for: %v", direct)
			}
		})
	}
}

// TestBothLegsUseTheRelaysLookupTable: both legs use the relay's lookup table in addition to the router's.
func TestBothLegsUseTheRelaysLookupTable(t *testing.T) {
	t.Parallel()
	profile := shieldpool.Development()
	pool, err := profile.Pool(profile.Mints[0])
	must(t, err)
	at, err := market.For(localnet.OutputMint())
	must(t, err)
	// The relay's own table includes the router's, so that it saves more.
	table := solana.PublicKey{1}
	s := newSwapFixture(t, fixtureOptions{accounts: map[solana.PublicKey]bank.Account{
		table: bank.LookupTable(append(pool.Constant(), router.TableAddresses(at)...)...),
	}})
	s.stop()
	s.startRelay(func(c *config.Serve) { c.LookupTable = table.String() })
	s.waitHealthy()
	s.setRouter(router.Settings{Wide: 20})
	w := s.submitSwap(nil)
	a := w.waitExecuted()
	for name, signature := range map[string]any{"first": w.firstSignature, "second": a.at("data", "swap_signature")} {
		version := uint64(0)
		sig, err := solana.SignatureFromBase58(signature.(string))
		must(t, err)
		got, err := s.directRPC.GetTransaction(t.Context(), sig, &rpc.GetTransactionOpts{Encoding: solana.EncodingBase64, MaxSupportedTransactionVersion: &version})
		must(t, err)
		tx, err := got.Transaction.GetTransaction()
		must(t, err)
		if !slices.ContainsFunc(tx.Message.AddressTableLookups, func(l solana.MessageAddressTableLookup) bool { return l.AccountKey.Equals(table) }) {
			t.Errorf("the %s leg does not use the table", name)
		}
	}
	s.setRouter(withFault(fault.Rule{Cut: true}))
	s.submitSwap(nil).waitRefunded(0)
	s.checkAccounting(notesRent + tokenRent + notesRent + stateRent)
}
