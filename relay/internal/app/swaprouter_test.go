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
	// greedy asks for more than the market's output.
	greedy bool
	// waits are the reasons for which the swap may wait, and hostile is the counted fault.
	waits   []string
	hostile string
}

func lying(lie router.Lie, call string) router.Settings {
	return router.Settings{Lies: []router.LieRule{{Lie: lie, Call: call}}}
}

func failing(rule fault.Rule) router.Settings { return router.Settings{Faults: []fault.Rule{rule}} }

// hostileRouters quote well, and their routes must not be signed.
func hostileRouters(payer solana.PublicKey) map[string]badRouter {
	const instructions = router.CallInstructions
	naming := func(lie router.Lie) router.Settings {
		return router.Settings{Lies: []router.LieRule{{Lie: lie, Account: payer}}}
	}
	only := []string{"router_hostile"}
	fails := []string{"swap_execution_failed"}
	return map[string]badRouter{
		"quotes another mint":        {settings: lying(router.WrongMint, ""), waits: only, hostile: "output_mint"},
		"quotes another amount":      {settings: lying(router.WrongAmount, ""), waits: only, hostile: "amount"},
		"quotes twice what it has":   {settings: lying(router.LowThreshold, ""), greedy: true, waits: fails},
		"calls another program":      {settings: lying(router.WrongProgram, ""), waits: only, hostile: "program"},
		"has the payer sign":         {settings: naming(router.PayerAccount), waits: only, hostile: "signer"},
		"writes the payer's account": {settings: naming(router.PayerWritable), waits: only, hostile: "account"},
		"wants another signature":    {settings: lying(router.ExtraSigner, ""), waits: only, hostile: "signer"},
		"swaps for another user":     {settings: lying(router.OtherUser, ""), waits: only, hostile: "signer"},
		"keeps half of the output":   {settings: lying(router.ShortOutput, ""), waits: fails},
		"takes half of the input":    {settings: lying(router.PartialFill, ""), waits: fails},
		"names a table that is none": {settings: lying(router.BogusTable, ""), waits: only, hostile: "lookup_table"},
		"names an account for table": {settings: lying(router.ForeignTable, ""), waits: only, hostile: "lookup_table"},
		"gives no instructions":      {settings: failing(fault.Rule{Method: instructions, Status: http.StatusInternalServerError}), waits: []string{"router_unavailable"}},
	}
}

// brokenRouters do not answer, or their answers are not those of a router.
func brokenRouters() map[string]badRouter {
	waits := []string{"router_unavailable"}
	return map[string]badRouter{
		"answers 503":               {settings: failing(fault.Rule{Status: http.StatusServiceUnavailable}), waits: waits},
		"limits the rate":           {settings: failing(fault.Rule{Status: http.StatusTooManyRequests, RetryAfter: time.Second}), waits: waits},
		"closes the connection":     {settings: failing(fault.Rule{Cut: true}), waits: waits},
		"hangs":                     {settings: failing(fault.Rule{Hang: true}), waits: waits},
		"is too slow":               {settings: failing(fault.Rule{Latency: 3 * time.Second}), waits: waits},
		"answers with a page":       {settings: lying(router.Garbage, ""), waits: waits},
		"breaks off":                {settings: lying(router.Truncated, ""), waits: waits},
		"answers with too much":     {settings: lying(router.Huge, ""), waits: waits},
		"gives a price and a page":  {settings: lying(router.Garbage, router.CallInstructions), waits: waits},
		"gives a price, breaks off": {settings: lying(router.Truncated, router.CallInstructions), waits: waits},
	}
}

// meet starts a swap with each router.
func (s *swapStand) meet(all map[string]badRouter) map[string]*swapping {
	s.t.Helper()
	swaps, treatment := map[string]*swapping{}, map[uint64]router.Settings{}
	gross := uint64(swapGross)
	for name, bad := range all {
		gross += 1_000_000
		w := s.newSwap(func(w *swapping) {
			w.gross = gross
			if bad.greedy {
				w.call.Swap.MinOutput = s.gives(gross) / 2 * 3
			}
		})
		swaps[name], treatment[w.net] = w, bad.settings
	}
	s.door.treat(treatment)
	for _, w := range swaps {
		w.post(s.stand, "Prefer", "respond-async")
	}
	return swaps
}

// rents is the cost of refunds for the payers, in lamports: the states' rents go to
// the recipient. No account is made in vain.
func rents(all map[string]badRouter) uint64 { return uint64(len(all)) * (notesRent + stateRent) }

// honest makes all of them honest from now on.
func (s *swapStand) honest() {
	s.t.Helper()
	s.door.treat(nil)
	s.behave(router.Settings{})
}

// TestARouterIsOfNoUseForTheWholeWindow: however it fails, all lamports are refunded, and
// none of its invalid routes is signed.
func TestARouterIsOfNoUseForTheWholeWindow(t *testing.T) {
	t.Parallel()
	for name, all := range map[string]func(*swapStand) map[string]badRouter{
		"hostile": func(s *swapStand) map[string]badRouter { return hostileRouters(s.payer.PublicKey()) },
		"broken":  func(*swapStand) map[string]badRouter { return brokenRouters() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSwapStand(t, standOptions{})
			routers := all(s)
			swaps := s.meet(routers)
			for name, w := range swaps {
				eventually(t, "the swap with a router that "+name+" waits", func() bool {
					got, _ := w.status().at("data", "swap_waits").(string)
					return slices.Contains(routers[name].waits, got)
				})
			}
			for name, w := range swaps {
				t.Log(name)
				w.refunded(0)
				if n := w.attempts("execute"); n != 0 {
					t.Errorf("a router that %s has had %d transactions signed", name, n)
				}
				w.silent()
			}
			for name, bad := range routers {
				if n, _ := s.metric(contract.MetricRouterRejected, `what="`+bad.hostile+`"`); bad.hostile != "" && n == 0 {
					t.Errorf("no metric counts a router that %s", name)
				}
				for _, reason := range bad.waits {
					if n, _ := s.metric(contract.MetricSwapWaits, `reason="`+reason+`"`); n == 0 {
						t.Errorf("no metric counts the waits for %s", reason)
					}
				}
			}
			if n, _ := s.metric(contract.MetricSwapsEnded, `outcome="refunded"`); n != float64(len(routers)) {
				t.Errorf("the metric has %v refunds, want %d", n, len(routers))
			}
			s.books(rents(routers))
		})
	}
}

// TestARouterRecovers: the same routers, honest before the timeout.
func TestARouterRecovers(t *testing.T) {
	t.Parallel()
	for name, all := range map[string]func(*swapStand) map[string]badRouter{
		"hostile": func(s *swapStand) map[string]badRouter { return hostileRouters(s.payer.PublicKey()) },
		"broken":  func(*swapStand) map[string]badRouter { return brokenRouters() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSwapStand(t, standOptions{slot: slow})
			routers := all(s)
			delete(routers, "quotes twice what it has") // honest, it has no such price
			swaps := s.meet(routers)
			for name, w := range swaps {
				var got string
				eventually(t, "the swap with a router that "+name+" waits", func() bool {
					got, _ = w.status().at("data", "swap_waits").(string)
					return got != ""
				})
				if !slices.Contains(routers[name].waits, got) && got != "router_unavailable" {
					t.Errorf("with a router that %s the swap waits for %s", name, got)
				}
			}
			s.honest()
			for name, w := range swaps {
				t.Log(name)
				w.executed()
				if n := w.attempts("execute"); n != 1 {
					t.Errorf("with a router that %s %d executions were signed", name, n)
				}
				w.silent()
			}
			s.books(uint64(len(swaps)) * (notesRent + tokenRent))
		})
	}
}

// TestAPriceFallsAndRecovers: the price falls and recovers, and the router's quotes with it.
func TestAPriceFallsAndRecovers(t *testing.T) {
	t.Parallel()
	s := newSwapStand(t, standOptions{slot: slow})
	w := s.newSwap(nil)
	s.price(90)
	w.post(s.stand)
	w.shows("funded", "swap_price")
	s.behave(failing(fault.Rule{Method: router.CallInstructions, Status: http.StatusServiceUnavailable}))
	s.price(100)
	w.shows("funded", "router_unavailable")
	s.price(90)
	s.honest()
	w.shows("funded", "swap_price")
	s.price(101)
	want := s.gives(w.net)
	w.executed()
	if got := s.tokensOf(w.call.Swap.RecipientATA); got != want {
		t.Errorf("the recipient got %d tokens, want the %d of the better price", got, want)
	}
	s.books(notesRent + tokenRent)
}

// TestATightPriceIsExecuted: the market's output is above the minimum by
// less than the usual slippage.
func TestATightPriceIsExecuted(t *testing.T) {
	t.Parallel()
	s := newSwapStand(t, standOptions{})
	for name, short := range map[string]uint64{"to the last unit": 0, "with a little room": 40_000} {
		w := s.begin(func(w *swapping) {
			net, _ := s.pool.Profile.Fees.Net(w.gross)
			w.call.Swap.MinOutput = s.gives(net) - short
		})
		t.Log(name)
		w.executed()
	}
	s.books(2 * (notesRent + tokenRent))
}

// TestRoutesThatDoNotFit: the relay requests routes again with fewer accounts, then direct
// ones. A router that has none ends in a refund.
func TestRoutesThatDoNotFit(t *testing.T) {
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
			s := newSwapStand(t, standOptions{})
			s.behave(tt.wide)
			direct := false
			s.door.before(func(_ string, query url.Values) {
				direct = direct || query.Get("onlyDirectRoutes") == "true"
				for _, name := range tt.ignore {
					query.Del(name)
				}
			})
			w := s.begin(nil)
			if tt.fits {
				w.executed()
				if n := w.attempts("execute"); n != 1 {
					t.Errorf("%d executions were signed", n)
				}
				s.books(notesRent + tokenRent)
			} else {
				w.shows("funded", "swap_route_too_large")
				w.refunded(0)
				s.books(notesRent + stateRent)
			}
			s.door.before(nil)
			if wantDirect := len(tt.ignore) > 0; direct != wantDirect {
				t.Errorf("a direct route was asked for: %v", direct)
			}
		})
	}
}

// TestTheRelaysOwnTable: both legs use the relay's lookup table in addition to the router's.
func TestTheRelaysOwnTable(t *testing.T) {
	t.Parallel()
	profile := shieldpool.Development()
	pool, err := profile.Pool(profile.Mints[0])
	must(t, err)
	at, err := market.For(localnet.OutputMint())
	must(t, err)
	// The relay's own table includes the router's, so that it saves more.
	table := solana.PublicKey{1}
	s := newSwapStand(t, standOptions{accounts: map[solana.PublicKey]bank.Account{
		table: bank.LookupTable(append(pool.Constant(), router.TableAddresses(at)...)...),
	}})
	s.stop()
	s.again(func(c *config.Serve) { c.LookupTable = table.String() })
	s.ready()
	s.behave(router.Settings{Wide: 20})
	w := s.begin(nil)
	a := w.executed()
	for name, signature := range map[string]any{"first": w.leg, "second": a.at("data", "swap_signature")} {
		version := uint64(0)
		sig, err := solana.SignatureFromBase58(signature.(string))
		must(t, err)
		got, err := s.watch.GetTransaction(t.Context(), sig, &rpc.GetTransactionOpts{Encoding: solana.EncodingBase64, MaxSupportedTransactionVersion: &version})
		must(t, err)
		tx, err := got.Transaction.GetTransaction()
		must(t, err)
		if !slices.ContainsFunc(tx.Message.AddressTableLookups, func(l solana.MessageAddressTableLookup) bool { return l.AccountKey.Equals(table) }) {
			t.Errorf("the %s leg does not use the table", name)
		}
	}
	s.behave(failing(fault.Rule{Cut: true}))
	s.begin(nil).refunded(0)
	s.books(notesRent + tokenRent + notesRent + stateRent)
}
