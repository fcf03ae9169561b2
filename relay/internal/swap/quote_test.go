package swap

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// TestSlippage: the price may worsen by the configured slippage, but never below the
// user's minimum.
func TestSlippage(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		out           uint64
		extraSlippage uint64 // added to the requested slippage
		wantSlippage  []int  // slippage of each quote
		wantReason    string
	}{
		"far above the minimum":                              {2 * testMinimum, 0, []int{50}, ""},
		"above the minimum by the configured slippage":       {testMinimum * 10_000 / 9_950, 0, []int{50}, ""},
		"just above, so that only less slippage is allowed":  {testMinimum + 300, 0, []int{50, 29}, ""},
		"one unit above, so that no slippage is allowed":     {testMinimum + 1, 0, []int{50, 0}, ""},
		"the minimum itself":                                 {testMinimum, 0, []int{50, 0}, ""},
		"one unit below":                                     {testMinimum - 1, 0, []int{50}, ReasonPrice},
		"no output":                                          {0, 0, []int{50}, ReasonPrice},
		"a router that applies more slippage than requested": {testMinimum + 300, 9, []int{50, 29}, ReasonPrice},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, (*world).createTokenAccounts)
			w.router.out = test.out
			w.router.changeQuote = func(q *Quote) {
				q.Threshold -= min(q.Threshold, test.extraSlippage*q.OutAmount/wholeBps)
			}
			order, err := w.next()
			var requested []int
			for _, r := range w.router.requests {
				requested = append(requested, r.SlippageBps)
				r.SlippageBps, r.Only = 0, ""
				want := QuoteRequest{InputMint: solana.WrappedSol, OutputMint: w.swap.Terms.OutputMint, User: w.swap.State, Amount: testLamports}
				if diff := cmp.Diff(want, r); diff != "" {
					t.Errorf("requests (-want +got)\n%s", diff)
				}
			}
			if diff := cmp.Diff(test.wantSlippage, requested); diff != "" {
				t.Errorf("requested slippage (-want +got)\n%s", diff)
			}
			if test.wantReason != "" {
				checkWait(t, w, err, test.wantReason)
				return
			}
			if err != nil || order.Draft.Purpose != txmgr.PurposeExecute {
				t.Fatalf("order is %+v, %v, want an execution", order, err)
			}
		})
	}
}

func TestSlippageFor(t *testing.T) {
	t.Parallel()
	for _, out := range []uint64{1, 2, 3, 9_999, 10_000, 10_001, 123_456_789, math.MaxUint64 - 1, math.MaxUint64} {
		for _, minimum := range []uint64{0, 1, out / 3, out - out/200, out - 1, out} {
			bps := slippageFor(out, minimum)
			if bps < 0 || bps > wholeBps {
				t.Fatalf("slippage for minimum %d of output %d is %d, want 0 to 10000", minimum, out, bps)
			}
			// The output after slippage, rounded up or down, is not below minimum.
			hi, lo := out/wholeBps*uint64(bps), out%wholeBps*uint64(bps)
			taken := hi + (lo+wholeBps-1)/wholeBps
			if out-taken < minimum {
				t.Errorf("slippage %d leaves %d of %d, want at least %d", bps, out-taken, out, minimum)
			}
		}
	}
}

// TestRouterErrors: the reason to wait that follows from each error of the router's client.
func TestRouterErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err    error
		slot   uint64
		reason string
		want   time.Duration
	}{
		"does not answer":                          {&RouterUnavailable{Kind: FaultTimeout}, 1010, ReasonRouterUnavailable, time.Second},
		"asks for a wait":                          {&RouterUnavailable{Kind: FaultRateLimited, RetryAfter: 5 * time.Second}, 1010, ReasonRouterUnavailable, 5 * time.Second},
		"asks for a shorter wait than the default": {&RouterUnavailable{Kind: FaultRateLimited, RetryAfter: time.Millisecond}, 1010, ReasonRouterUnavailable, time.Second},
		"asks for a wait past the timeout":         {&RouterUnavailable{Kind: FaultRateLimited, RetryAfter: time.Hour}, 1190, ReasonRouterUnavailable, 4400 * time.Millisecond},
		"has no route":                             {NewNoRoute(CodeNoRoutes), 1010, ReasonNoRoute, time.Second},
		"contradicts the request":                  {&RejectedRoute{What: RejectedOutputMint}, 1010, ReasonRouteRejected, time.Second},
	}
	for name, test := range tests {
		for _, at := range []string{"quote", "instructions"} {
			t.Run(name+", "+at, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, func(w *world) { w.createTokenAccounts(); w.chain.slot = test.slot })
				if at == "quote" {
					w.router.quoteErr = func(QuoteRequest) error { return test.err }
				} else {
					w.router.ixErr = test.err
				}
				_, err := w.next()
				// checkWait is not used: its bounds are for waits that no router asked for.
				var wait *txmgr.Deferral
				if !errors.As(err, &wait) || wait.Reason != test.reason || wait.Delay != test.want {
					t.Errorf("wait is %+v, want %s for %s", wait, test.reason, test.want)
				}
			})
		}
	}
	w := newWorld(t, (*world).createTokenAccounts)
	w.router.quoteErr = func(QuoteRequest) error { return errors.New("invalid request") }
	if _, err := w.next(); err == nil || errors.As(err, new(*txmgr.Deferral)) {
		t.Errorf("error is %v, want an error that is not a deferral", err)
	}
}

// TestQuoteOfLaggingRouterIsStale: a quote from a slot long ago is not used.
func TestQuoteOfLaggingRouterIsStale(t *testing.T) {
	t.Parallel()
	for behind, want := range map[uint64]string{0: "", quoteSlots: "", quoteSlots + 1: ReasonQuoteStale, testCreated + 10: ""} { // the last entry: a router that reports no slot
		w := newWorld(t, (*world).createTokenAccounts)
		w.router.changeQuote = func(q *Quote) { q.ContextSlot -= behind }
		_, err := w.next()
		if want != "" {
			checkWait(t, w, err, want)
		} else if err != nil {
			t.Errorf("%d slots behind: %v", behind, err)
		}
	}
}

// TestRouteWidths: after a route that does not fit, the planner asks for one with fewer accounts,
// then for a direct one, and remembers the width that fitted.
func TestRouteWidths(t *testing.T) {
	t.Parallel()
	full := []QuoteRequest{{}, {MaxAccounts: 40}, {MaxAccounts: 28}, {MaxAccounts: 20}, {MaxAccounts: 20, DirectOnly: true}}
	paddingByWidth := func(r QuoteRequest) int {
		switch {
		case r.DirectOnly:
			return 0
		case r.MaxAccounts == 0:
			return 120
		default:
			return r.MaxAccounts
		}
	}
	tests := map[string]struct {
		padding  func(QuoteRequest) int
		quoteErr func(QuoteRequest) error
		ixErr    error
		table    bool
		want     int // how many widths are requested
		reason   string
		wantNext int // the first width of the next round
	}{
		"the widest fits":                              {want: 1},
		"only the direct route fits":                   {padding: paddingByWidth, want: 5, wantNext: 4},
		"with a table, a route of forty accounts fits": {padding: paddingByWidth, table: true, want: 2, wantNext: 1},
		"no route fits":                                {padding: func(QuoteRequest) int { return 40 }, want: 5, reason: ReasonRouteTooLarge},
		"more accounts than a transaction may lock": {padding: func(r QuoteRequest) int {
			if r.MaxAccounts == 0 {
				return 60
			}
			return 20
		}, table: true, want: 2, wantNext: 1},
		"the client reports that the instruction is too large": {ixErr: NewNoRoute(CodeTooLarge), want: 5, reason: ReasonRouteTooLarge},
		"the quote is already refused as too large": {quoteErr: func(r QuoteRequest) error {
			if r.MaxAccounts != 28 {
				return NewNoRoute(CodeTooLarge)
			}
			return nil
		}, want: 3, wantNext: 2},
		"there is no direct route": {padding: paddingByWidth, quoteErr: func(r QuoteRequest) error {
			if r.DirectOnly {
				return NewNoRoute(CodeNoRoutes)
			}
			return nil
		}, want: 5, reason: ReasonNoRoute},
		"the direct route's price is bad": {padding: paddingByWidth, want: 5, reason: ReasonPrice, wantNext: 4},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(w *world) {
				w.createTokenAccounts()
				w.router.padding, w.router.quoteErr, w.router.ixErr = test.padding, test.quoteErr, test.ixErr
				if test.reason == ReasonPrice {
					w.router.changeQuote = func(q *Quote) {
						if w.router.requests[len(w.router.requests)-1].DirectOnly {
							q.OutAmount, q.Threshold = testMinimum-1, testMinimum-1
						}
					}
				}
				if test.table {
					var all []solana.PublicKey
					for i := range 120 {
						all = append(all, key(9, byte(i)))
					}
					at := key(61)
					w.putTable(at, all...)
					w.router.table = &at
				}
			})
			round := func(from int) {
				t.Helper()
				w.router.requests = nil
				order, err := w.next()
				switch {
				case test.reason != "":
					checkWait(t, w, err, test.reason)
				case err != nil:
					t.Fatal(err)
				default:
					w.decode(order.Draft)
				}
				var requested []QuoteRequest
				for _, r := range w.router.requests {
					requested = append(requested, QuoteRequest{MaxAccounts: r.MaxAccounts, DirectOnly: r.DirectOnly})
				}
				if diff := cmp.Diff(full[from:test.want], requested); diff != "" {
					t.Errorf("requests (-want +got)\n%s", diff)
				}
			}
			round(0)
			round(test.wantNext)
		})
	}
}

// TestOnlyUsefulTablesAreUsed: a table, also the relay's own, is used only if it makes
// the transaction smaller.
func TestOnlyUsefulTablesAreUsed(t *testing.T) {
	t.Parallel()
	market := []solana.PublicKey{key(8, 1), key(8, 2), key(8, 3)}
	tests := map[string]struct {
		own, routers []solana.PublicKey
		same         bool
		want         int
	}{
		"no table": {want: 0},
		"a table without accounts of the transaction":      {routers: []solana.PublicKey{key(70), key(71)}, want: 0},
		"a table with a single account of the transaction": {routers: market[:1], want: 0},
		"a table with three accounts of the transaction":   {routers: market, want: 1},
		"a table with the payer and one other account":     {routers: []solana.PublicKey{key(50), market[0]}, want: 0},
		"the relay's own table":                            {own: []solana.PublicKey{solana.TokenProgramID, solana.SystemProgramID}, want: 1},
		"both tables":                                      {own: []solana.PublicKey{solana.TokenProgramID, solana.SystemProgramID}, routers: market, want: 2},
		"both tables, with the same accounts":              {own: market, routers: market, want: 1},
		"the router names the relay's own table":           {own: market, routers: market, same: true, want: 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(w *world) {
				w.createTokenAccounts()
				at := key(61)
				if test.routers != nil {
					w.putTable(at, test.routers...)
					w.router.table = &at
				}
				if test.own != nil {
					w.ownTable = &shieldpool.LookupTable{Address: key(62), Addresses: test.own}
					if test.same {
						w.ownTable.Address = at
					}
					w.putTable(w.ownTable.Address, test.own...)
				}
			})
			order, err := w.next()
			if err != nil {
				t.Fatal(err)
			}
			w.decode(order.Draft)
			tx, err := order.Draft.Build(w.payer, shieldpool.Compute{}, solana.Hash{1})
			if err != nil {
				t.Fatal(err)
			}
			if got := len(tx.Message.AddressTableLookups); got != test.want {
				t.Errorf("transaction uses %d tables, want %d", got, test.want)
			}
		})
	}
}

func twoRouters(w *world) {
	w.createTokenAccounts()
	w.routers = 2
}

// Each try begins with the next router, whichever process makes it and whatever was wrong with
// the last one's route.
func TestEachTryBeginsWithTheNextRouter(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world){
		"after a draft, which failed or expired": func(*world) {},
		"after a price below the minimum":        func(w *world) { w.router.out = testMinimum - 1 },
		"after a quote from long ago":            func(w *world) { w.router.changeQuote = func(q *Quote) { q.ContextSlot = 1 } },
		"after a quote for another amount":       func(w *world) { w.router.changeQuote = func(q *Quote) { q.InAmount++ } },
		"after instructions of another program":  func(w *world) { w.router.changeIx = func(ix *Instructions) { ix.Program = key(99) } },
		"after a quote without instructions":     func(w *world) { w.router.ixErr = &RouterUnavailable{Kind: FaultTimeout} },
		"after routes that are too large":        func(w *world) { w.router.padding = func(QuoteRequest) int { return 100 } },
		"when no router gave a quote": func(w *world) {
			w.router.quoteErr = func(QuoteRequest) error { return &RouterUnavailable{Kind: FaultTimeout} }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []int
			for tries := range 3 {
				w := newWorld(t, twoRouters) // another process
				change(w)
				w.tries = tries
				_, _ = w.next() // some of these fail, as they should
				if len(w.router.requests) == 0 {
					t.Fatalf("try %d asked no router", tries)
				}
				for _, r := range w.router.requests[1:] {
					if r.First != w.router.requests[0].First {
						t.Errorf("try %d begins with router %d and router %d, want one", tries, w.router.requests[0].First, r.First)
					}
				}
				got = append(got, w.router.requests[0].First)
			}
			if diff := cmp.Diff([]int{0, 1, 0}, got); diff != "" {
				t.Errorf("first routers (-want +got)\n%s", diff)
			}
		})
	}
}

// A narrower route is asked for from the router whose route failed, not from the others.
func TestEachRouterHasItsOwnRouteWidth(t *testing.T) {
	t.Parallel()
	w := newWorld(t, twoRouters)
	tooWide := &txmgr.Failure{Err: &shieldpool.TransactionError{Kind: "InstructionError", Detail: custom, Custom: 1}}
	var accounts []int
	for w.tries = range 4 {
		order, err := w.next()
		if err != nil {
			t.Fatal(err)
		}
		accounts = append(accounts, w.router.requests[len(w.router.requests)-1].MaxAccounts)
		_ = w.planner.Rejected(w.submission, order.Draft, tooWide)
	}
	if diff := cmp.Diff([]int{0, 0, 40, 40}, accounts); diff != "" {
		t.Errorf("accounts asked for (-want +got)\n%s", diff)
	}
}

// The slippage of the second quote follows from the first one's price.
func TestTheSecondQuoteComesFromTheRouterOfTheFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, twoRouters)
	w.router.out = testMinimum + 300
	if _, err := w.next(); err != nil {
		t.Fatal(err)
	}
	var only []string
	for _, r := range w.router.requests {
		only = append(only, r.Only)
	}
	if diff := cmp.Diff([]string{"", "a"}, only); diff != "" {
		t.Errorf("routers asked alone (-want +got)\n%s", diff)
	}
}
