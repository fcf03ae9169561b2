package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
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

// badRouter is a router with one kind of fault.
type badRouter struct {
	settings router.Settings
	// aboveMarket asks for more than the market's output.
	aboveMarket bool
	// holdReasons are the reasons for which the swap may wait.
	holdReasons []string
	// rejectReason is the reason with which the route is counted as rejected; "" for none.
	rejectReason string
}

func withLie(lie router.Lie, call string) router.Settings {
	return router.Settings{Lies: []router.LieRule{{Lie: lie, Call: call}}}
}

func withFault(rule fault.Rule) router.Settings { return router.Settings{Faults: []fault.Rule{rule}} }

// invalidRouteRouters return quotes and routes that must not be signed.
func invalidRouteRouters(payer solana.PublicKey) map[string]badRouter {
	const instructions = router.CallInstructions
	naming := func(lie router.Lie) router.Settings {
		return router.Settings{Lies: []router.LieRule{{Lie: lie, Account: payer}}}
	}
	hostile := []string{"router_hostile"}
	fails := []string{"swap_execution_failed"}
	return map[string]badRouter{
		"quotes another mint":        {settings: withLie(router.WrongMint, ""), holdReasons: hostile, rejectReason: "output_mint"},
		"quotes another amount":      {settings: withLie(router.WrongAmount, ""), holdReasons: hostile, rejectReason: "amount"},
		"quotes twice its output":    {settings: withLie(router.LowThreshold, ""), aboveMarket: true, holdReasons: fails},
		"calls another program":      {settings: withLie(router.WrongProgram, ""), holdReasons: hostile, rejectReason: "program"},
		"has the payer sign":         {settings: naming(router.PayerAccount), holdReasons: hostile, rejectReason: "signer"},
		"writes the payer's account": {settings: naming(router.PayerWritable), holdReasons: hostile, rejectReason: "account"},
		"wants another signature":    {settings: withLie(router.ExtraSigner, ""), holdReasons: hostile, rejectReason: "signer"},
		"swaps for another user":     {settings: withLie(router.OtherUser, ""), holdReasons: hostile, rejectReason: "signer"},
		"keeps half of the output":   {settings: withLie(router.ShortOutput, ""), holdReasons: fails},
		"takes half of the input":    {settings: withLie(router.PartialFill, ""), holdReasons: fails},
		"names an invalid table":     {settings: withLie(router.BogusTable, ""), holdReasons: hostile, rejectReason: "lookup_table"},
		"names an account as table":  {settings: withLie(router.ForeignTable, ""), holdReasons: hostile, rejectReason: "lookup_table"},
		"returns no instructions":    {settings: withFault(fault.Rule{Method: instructions, Status: http.StatusInternalServerError}), holdReasons: []string{"router_unavailable"}},
	}
}

// brokenRouters do not answer, or answer with something else than quotes and routes.
func brokenRouters() map[string]badRouter {
	waits := []string{"router_unavailable"}
	return map[string]badRouter{
		"answers 503":                     {settings: withFault(fault.Rule{Status: http.StatusServiceUnavailable}), holdReasons: waits},
		"limits the rate":                 {settings: withFault(fault.Rule{Status: http.StatusTooManyRequests, RetryAfter: time.Second}), holdReasons: waits},
		"closes the connection":           {settings: withFault(fault.Rule{Cut: true}), holdReasons: waits},
		"hangs":                           {settings: withFault(fault.Rule{Hang: true}), holdReasons: waits},
		"is too slow":                     {settings: withFault(fault.Rule{Latency: 3 * time.Second}), holdReasons: waits},
		"answers with a web page":         {settings: withLie(router.Garbage, ""), holdReasons: waits},
		"breaks off":                      {settings: withLie(router.Truncated, ""), holdReasons: waits},
		"answers with too much":           {settings: withLie(router.Huge, ""), holdReasons: waits},
		"quotes, then returns a web page": {settings: withLie(router.Garbage, router.CallInstructions), holdReasons: waits},
		"quotes, then breaks off":         {settings: withLie(router.Truncated, router.CallInstructions), holdReasons: waits},
	}
}

// submitSwaps submits a swap for each router.
func (s *swapFixture) submitSwaps(all map[string]badRouter) map[string]*testSwap {
	s.t.Helper()
	swaps, settings := map[string]*testSwap{}, map[uint64]router.Settings{}
	gross := uint64(swapGross)
	for name, bad := range all {
		gross += 1_000_000
		w := s.newSwap(func(w *testSwap) {
			w.gross = gross
			if bad.aboveMarket {
				w.call.Swap.MinOutput = s.marketOutput(gross) / 2 * 3
			}
		})
		swaps[name], settings[w.net] = w, bad.settings
	}
	s.routerProxy.setByAmount(settings)
	for _, w := range swaps {
		w.submit(s.fixture, "Prefer", "respond-async")
	}
	return swaps
}

// refundRent returns the rent that refunded swaps cost the payers. It includes the rent of each
// swap's state, which goes to the recipient, and of no token account.
func refundRent(all map[string]badRouter) uint64 { return uint64(len(all)) * (notesRent + stateRent) }

// resetRouter makes the router answer all later calls correctly.
func (s *swapFixture) resetRouter() {
	s.t.Helper()
	s.routerProxy.setByAmount(nil)
	s.setRouter(router.Settings{})
}

// Whatever the router's fault is, all lamports are refunded, and no invalid route is signed.
func TestARouterThatFailsUntilTheTimeoutLeadsToRefunds(t *testing.T) {
	t.Parallel()
	for name, all := range map[string]func(*swapFixture) map[string]badRouter{
		"invalid routes":   func(s *swapFixture) map[string]badRouter { return invalidRouteRouters(s.payer.PublicKey()) },
		"no valid answers": func(*swapFixture) map[string]badRouter { return brokenRouters() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSwapFixture(t, fixtureOptions{})
			routers := all(s)
			swaps := s.submitSwaps(routers)
			for name, w := range swaps {
				eventually(t, "the swap of the router that "+name+" waits", func() bool {
					got, _ := w.status().at("data", "swap_waits").(string)
					return slices.Contains(routers[name].holdReasons, got)
				})
			}
			for name, w := range swaps {
				t.Log(name)
				w.waitRefunded(0)
				if n := w.attempts("execute"); n != 0 {
					t.Errorf("router that %s: %d executions were signed, want 0", name, n)
				}
				w.checkNothingLogged()
			}
			for name, bad := range routers {
				if n, _ := s.metric(contract.MetricRouterRejected, `what="`+bad.rejectReason+`"`); bad.rejectReason != "" && n == 0 {
					t.Errorf("router that %s: no route is counted as rejected for %s", name, bad.rejectReason)
				}
				for _, reason := range bad.holdReasons {
					if n, _ := s.metric(contract.MetricSwapWaits, `reason="`+reason+`"`); n == 0 {
						t.Errorf("no deferral is counted for %s", reason)
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

// The routers of the previous test answer correctly before the timeout.
func TestSwapsAreExecutedAfterTheRouterRecovers(t *testing.T) {
	t.Parallel()
	for name, all := range map[string]func(*swapFixture) map[string]badRouter{
		"invalid routes":   func(s *swapFixture) map[string]badRouter { return invalidRouteRouters(s.payer.PublicKey()) },
		"no valid answers": func(*swapFixture) map[string]badRouter { return brokenRouters() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSwapFixture(t, fixtureOptions{slotDuration: slowSlot})
			routers := all(s)
			delete(routers, "quotes twice its output") // a correct quote would be below the minimum
			swaps := s.submitSwaps(routers)
			for name, w := range swaps {
				var got string
				eventually(t, "the swap of the router that "+name+" waits", func() bool {
					got, _ = w.status().at("data", "swap_waits").(string)
					return got != ""
				})
				if !slices.Contains(routers[name].holdReasons, got) && got != "router_unavailable" {
					t.Errorf("router that %s: the swap waits for %s, want one of %v", name, got, routers[name].holdReasons)
				}
			}
			s.resetRouter()
			for name, w := range swaps {
				t.Log(name)
				w.waitExecuted()
				if n := w.attempts("execute"); n != 1 {
					t.Errorf("router that %s: %d executions were signed, want 1", name, n)
				}
				w.checkNothingLogged()
			}
			s.checkAccounting(uint64(len(swaps)) * (notesRent + tokenRent))
		})
	}
}

// The market's price, and so the router's quotes, fall and recover.
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
		t.Errorf("the recipient got %d tokens, want %d at the better price", got, want)
	}
	s.checkAccounting(notesRent + tokenRent)
}

// The preferred router is down, and the first fallback router does not know the relay's key.
func TestASwapIsExecutedByAFallbackRouter(t *testing.T) {
	t.Parallel()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(refusing.Close)
	s := newSwapFixture(t, fixtureOptions{slotDuration: slowSlot, changeConfig: func(c *config.Serve) {
		c.Router.FallbacksFile = writeTempFile(t, fmt.Sprintf("- {name: second, url: '%s'}\n- {name: third, urlFile: %s, apiKeyFile: %s}\n", refusing.URL, c.Router.URLFile, c.Router.APIKeyFile))
		c.Router.URLFile = writeTempFile(t, "http://127.0.0.1:1/"+credential)
	}})
	w := s.submitSwap(nil)
	w.waitExecuted()
	for _, want := range []string{`outcome="connection",router="preferred"`, `outcome="rejected",router="second"`, `outcome="ok",router="third"`} {
		if n, _ := s.metric(contract.MetricRouterRequests, want); n == 0 {
			t.Errorf("no call is counted with %s", want)
		}
	}
	if message := s.health().at("checks", "router", "message"); message != "ok" {
		t.Errorf("health reports the routers, although one works: %v", message)
	}
	w.checkNothingLogged()
	s.checkAccounting(notesRent + tokenRent)
}

// The market's output is above the minimum by less than the configured slippage.
func TestASwapIsExecutedNearItsMinimum(t *testing.T) {
	t.Parallel()
	s := newSwapFixture(t, fixtureOptions{})
	for name, margin := range map[string]uint64{"exactly the minimum": 0, "little above the minimum": 40_000} {
		w := s.submitSwap(func(w *testSwap) {
			net, _ := s.pool.Profile.Fees.Net(w.gross)
			w.call.Swap.MinOutput = s.marketOutput(net) - margin
		})
		t.Log(name)
		w.waitExecuted()
	}
	s.checkAccounting(2 * (notesRent + tokenRent))
}

// If a route is too large, the relay requests routes with fewer accounts, then direct routes.
// If no route fits, the swap is refunded.
func TestSmallerRoutesAreRequestedUntilOneFits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ignore []string // query parameters that the router ignores
		wide   router.Settings
		fits   bool
	}{
		"fewer accounts fit":             {nil, router.Settings{Wide: 50, Outside: true}, true},
		"fewer accounts fit, in a table": {nil, router.Settings{Wide: 120}, true},
		"only a direct route fits":       {[]string{"maxAccounts"}, router.Settings{Wide: 50, Outside: true}, true},
		"no route fits":                  {[]string{"maxAccounts", "onlyDirectRoutes"}, router.Settings{Wide: 50, Outside: true}, false},
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
					t.Errorf("%d executions were signed, want 1", n)
				}
				s.checkAccounting(notesRent + tokenRent)
			} else {
				w.waitPhase("funded", "swap_route_too_large")
				w.waitRefunded(0)
				s.checkAccounting(notesRent + stateRent)
			}
			s.routerProxy.setHook(nil)
			if wantDirect := len(tt.ignore) > 0; direct != wantDirect {
				t.Errorf("a direct route was requested: %v, want %v", direct, wantDirect)
			}
		})
	}
}

func TestBothLegsUseTheRelaysLookupTable(t *testing.T) {
	t.Parallel()
	profile := shieldpool.Development()
	pool, err := profile.Pool(profile.Mints[0])
	must(t, err)
	at, err := market.For(localnet.OutputMint())
	must(t, err)
	// The relay's table also has the router's addresses, so the second leg needs no other table.
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
		version := uint64(1)
		sig, err := solana.SignatureFromBase58(signature.(string))
		must(t, err)
		got, err := s.directRPC.GetTransaction(t.Context(), sig, &rpc.GetTransactionOpts{Encoding: solana.EncodingBase64, MaxSupportedTransactionVersion: &version})
		must(t, err)
		tx, err := got.Transaction.GetTransaction()
		must(t, err)
		if !slices.ContainsFunc(tx.Message.AddressTableLookups, func(l solana.MessageAddressTableLookup) bool { return l.AccountKey.Equals(table) }) {
			t.Errorf("the %s leg does not use the relay's lookup table", name)
		}
	}
	s.setRouter(withFault(fault.Rule{Cut: true}))
	s.submitSwap(nil).waitRefunded(0)
	s.checkAccounting(notesRent + tokenRent + notesRent + stateRent)
}
