package swap_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/hack/localnet/market"
	localrouter "github.com/relaypool/relaypool/hack/localnet/router"
	"github.com/relaypool/relaypool/hack/localnet/trapdoor"
	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/internal/router"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/swap"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/rpc"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	deposit   = solana.LAMPORTS_PER_SOL
	stateRent = 1_468_120
	tokenRent = 1_488_440
)

// countingObserver records what a planner reports.
type countingObserver struct{ deferrals, rejected []string }

func (c *countingObserver) SwapDeferred(reason string) { c.deferrals = append(c.deferrals, reason) }
func (c *countingObserver) RouteRejected(what string)  { c.rejected = append(c.rejected, what) }

type payerKeys []solana.PublicKey

func (k payerKeys) Keys() []solana.PublicKey { return k }

// localSwap is a local chain and router, and one swap on it that was funded a few slots
// ago. The test advances the slots.
type localSwap struct {
	*localnet.Chain
	t   *testing.T
	rpc *chain.Endpoints
	// node reads blockhashes, because rpc caches them by the clock.
	node       *rpc.Client
	pool       *shieldpool.Pool
	payer      solana.PrivateKey
	wallet     solana.PublicKey
	options    swap.Options
	tries      int // earlier tries of the swap
	planner    *swap.Planner
	observer   countingObserver
	swap       *shieldpool.Swap
	submission *submission.Submission
	net        uint64
}

func keyOf(label string) solana.PrivateKey {
	seed := sha256.Sum256([]byte(label))
	return solana.PrivateKey(ed25519.NewKeyFromSeed(seed[:]))
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// newLocalSwap makes a chain, and a swap with the given minimum, in percent of the
// market's price. formats are those that its transactions may have; none for v0.
func newLocalSwap(t *testing.T, minimum uint64, formats ...shieldpool.Format) *localSwap {
	t.Helper()
	keys := trapdoor.New("swap", shieldpool.SignalCount)
	l := &localSwap{t: t, payer: keyOf("payer"), wallet: keyOf("wallet").PublicKey()}
	l.Chain = must[*localnet.Chain](t)(localnet.New(localnet.Options{VerifyingKey: must[[]byte](t)(keys.VerifyingKey()), Initialised: true}))
	server, routing := httptest.NewServer(l.Chain), httptest.NewServer(l.Router())
	l.rpc = must[*chain.Endpoints](t)(chain.NewEndpoints(chain.EndpointsOptions{
		Endpoints: []chain.Endpoint{{Name: "local", URL: server.URL}}, Genesis: localnet.GenesisHash,
		Now: time.Now, Rand: rand.Float64, Log: slog.New(slog.DiscardHandler),
	}))
	transport := rpc.NewHTTPClient()
	l.node = must[*rpc.Client](t)(rpc.New(rpc.Options{URL: server.URL, HTTP: transport, Now: time.Now}))
	// The clock of router and planner does not advance, so that no quote is too old on
	// a slow machine.
	now := time.Now()
	clock := func() time.Time { return now }
	t.Cleanup(func() {
		l.rpc.Close()
		transport.CloseIdleConnections()
		routing.Close()
		server.Close()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	profile := shieldpool.Development()
	l.pool = must[*shieldpool.Pool](t)(profile.Pool(profile.Mints[0]))
	for _, who := range []solana.PublicKey{l.payer.PublicKey(), l.pool.Address} {
		if err := l.Fund(who, 10*deposit); err != nil {
			t.Fatal(err)
		}
	}
	l.Finalize()
	var allowed shieldpool.Formats
	if len(formats) > 0 {
		allowed = func() []shieldpool.Format { return formats }
	}
	l.options = swap.Options{
		Formats: allowed, Chain: l.rpc, Pool: l.pool, RouterProgram: market.ProgramID, Payers: payerKeys{l.payer.PublicKey(), keyOf("other").PublicKey()},
		SlippageBps: 50, Observer: &l.observer, Log: slog.New(slog.DiscardHandler), Now: clock, SlotDuration: nominalSlot,
	}
	l.planWith(routing.URL)
	l.startSwap(keys, now, minimum)
	return l
}

// planWith makes the planner anew, with the routers at these URLs.
func (l *localSwap) planWith(urls ...string) {
	l.t.Helper()
	var clients []*router.Client
	for i, url := range urls {
		client := must[*router.Client](l.t)(router.New(router.Options{
			Name: fmt.Sprintf("router-%d", i), BaseURL: url, HTTP: router.NewHTTPClient(), Now: l.options.Now, Rand: rand.Float64,
			Log: slog.New(slog.DiscardHandler), Timeout: time.Minute,
		}))
		l.t.Cleanup(client.Close)
		clients = append(clients, client)
	}
	l.options.Router = must[*router.Routers](l.t)(router.NewRouters(clients...))
	l.planner = must[*swap.Planner](l.t)(swap.New(l.options))
}

// startSwap lands the first leg.
func (l *localSwap) startSwap(keys *trapdoor.Key, now time.Time, minimum uint64) {
	l.t.Helper()
	var ok bool
	if l.net, ok = l.pool.Profile.Fees.Net(deposit); !ok {
		l.t.Fatal("the fee is more than the deposit")
	}
	out := must[*market.State](l.t)(l.MarketState()).Output(l.net)
	terms := shieldpool.SwapTerms{
		OutputMint: localnet.OutputMint(), RecipientATA: must[solana.PublicKey](l.t)(shieldpool.AssociatedTokenAccount(l.wallet, localnet.OutputMint())),
		MinOutput: out * minimum / 100,
	}
	tree, _, err := l.rpc.Accounts(l.t.Context(), []solana.PublicKey{l.pool.MerkleTree}, onchain.Confirmed, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	call := &shieldpool.Call{
		Inputs: &shieldpool.PublicInputs{
			Root: must[*shieldpool.TreeAccount](l.t)(l.pool.Profile.ParseTree(tree[0].Data)).Root, PublicAmount: -int64(deposit), MintAddress: l.pool.Mint.Field,
			Nullifiers: [2][32]byte{{31: 1}, {31: 2}}, Commitments: [2][32]byte{{31: 3}, {31: 4}},
		},
		Destination: shieldpool.Destination{Swap: &terms},
	}
	call.Inputs.ExtDataHash = shieldpool.ExtDataHash(call.Destination)
	signals := call.Inputs.Signals()
	call.Proof = must[[]byte](l.t)(keys.Prove(signals[:], 1))
	call.Recipient = l.wallet
	l.swap = must[*shieldpool.Swap](l.t)(l.pool.Swap(call.Inputs.Nullifiers[0], terms))
	firstLegSlot := l.land(func(hash solana.Hash) (*solana.Transaction, error) {
		return l.pool.Transaction(l.payer.PublicKey(), call, shieldpool.Compute{Limit: 400_000, Price: 1}, hash, nil)
	})
	parent := uuid.New()
	l.submission = &submission.Submission{
		ID: uuid.New(), Parent: &parent, Kind: submission.KindSwapExecution, State: submission.Processing, Call: call, CreatedAt: now,
		Swap: &submission.Swap{Phase: submission.PhaseFunded, TimeoutSlot: firstLegSlot + l.pool.Profile.SwapTimeout},
	}
}

// land signs, sends and confirms a transaction of the payer, and returns the slot in
// which it landed.
func (l *localSwap) land(build func(solana.Hash) (*solana.Transaction, error)) (slot uint64) {
	l.t.Helper()
	ctx := l.t.Context()
	hash := must[onchain.Blockhash](l.t)(l.node.LatestBlockhash(ctx))
	tx := must[*solana.Transaction](l.t)(build(hash.Hash))
	tx.Signatures = []solana.Signature{must[solana.Signature](l.t)(l.payer.Sign(must[[]byte](l.t)(tx.Message.MarshalBinary())))}
	if err := l.rpc.Send(ctx, must[[]byte](l.t)(tx.MarshalBinary()), onchain.Sending{First: true}, 0); err != nil {
		l.t.Fatalf("send: %v", err)
	}
	l.Advance(localnet.DefaultConfirmAfter + 1)
	statuses, _, err := l.rpc.Statuses(ctx, tx.Signatures)
	if err != nil || statuses[0] == nil || statuses[0].Err != nil {
		l.t.Fatalf("status is %+v, %v, want a success", statuses, err)
	}
	return statuses[0].Slot
}

// step carries out the planner's order as the engine does: it simulates a draft, and
// lands it if the simulation succeeds.
func (l *localSwap) step() (swap.Order, error) {
	l.t.Helper()
	order, err := l.planner.Next(l.t.Context(), l.submission, l.tries, 0)
	if err != nil || order.Draft == nil {
		return order, err
	}
	build := func(hash solana.Hash) (*solana.Transaction, error) {
		return order.Draft.Build(l.payer.PublicKey(), shieldpool.Compute{Format: order.Draft.Format, Limit: 1_400_000, LoadedData: 64 << 20}, hash)
	}
	tx, err := build(solana.Hash{})
	if err != nil {
		return order, err
	}
	tx.Signatures = make([]solana.Signature, 1)
	sim := must[onchain.Simulation](l.t)(l.rpc.Simulate(l.t.Context(), must[[]byte](l.t)(tx.MarshalBinary()), true, 0))
	if sim.Err != nil {
		return order, l.planner.Rejected(l.submission, order.Draft, &txmgr.Failure{Err: sim.Err})
	}
	l.land(build)
	return order, nil
}

// runToEnd repeats step until the swap has ended or a step fails. It returns the
// purposes of the drafts that landed.
func (l *localSwap) runToEnd() (purposes []txmgr.Purpose, ended *txmgr.Landing, err error) {
	l.t.Helper()
	for range 5 {
		order, err := l.step()
		if err != nil || order.Ended != nil {
			return purposes, order.Ended, err
		}
		purposes = append(purposes, order.Draft.Purpose)
	}
	l.t.Fatalf("the swap does not end, drafts that landed: %v", purposes)
	return nil, nil, nil
}

func (l *localSwap) lamports(of solana.PublicKey) uint64 {
	l.t.Helper()
	n, _, err := l.rpc.Balance(l.t.Context(), of, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	return n
}

// tokens is the recipient's balance; 0 without an account.
func (l *localSwap) tokens() uint64 {
	l.t.Helper()
	found, _, err := l.rpc.Accounts(l.t.Context(), []solana.PublicKey{l.swap.Terms.RecipientATA}, onchain.Confirmed, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	if found[0] == nil {
		return 0
	}
	return must[*shieldpool.TokenAccount](l.t)(shieldpool.ParseTokenAccount(found[0].Data)).Amount
}

// advanceToTimeout advances the chain until the timeout slot is confirmed.
func (l *localSwap) advanceToTimeout() {
	l.t.Helper()
	slot := must[uint64](l.t)(l.rpc.Slot(l.t.Context(), onchain.Confirmed))
	if slot < l.submission.Swap.TimeoutSlot {
		l.Advance(l.submission.Swap.TimeoutSlot - slot)
	}
}

// checkRefund advances past the timeout, and checks that the recipient's wallet gets
// the swap's lamports, the state's rent and extra.
func (l *localSwap) checkRefund(extra uint64) {
	l.t.Helper()
	l.advanceToTimeout()
	before := l.lamports(l.wallet)
	purposes, ended, err := l.runToEnd()
	if err != nil || ended == nil || ended.Purpose != txmgr.PurposeRefund || !slices.Equal(purposes, []txmgr.Purpose{txmgr.PurposeRefund}) {
		l.t.Fatalf("past the timeout drafts %v landed, end is %+v, error %v; want a refund", purposes, ended, err)
	}
	if got, want := l.lamports(l.wallet)-before, l.net+stateRent+extra; got != want || l.lamports(l.swap.State) != 0 {
		l.t.Errorf("the wallet got %d lamports, want %d; the state has %d, want 0", got, want, l.lamports(l.swap.State))
	}
	if l.tokens() != 0 {
		l.t.Errorf("after a refund the recipient has %d tokens, want 0", l.tokens())
	}
}

// TestSwapOnALocalChain: the recipient gets tokens, and the relay pays only the fee and the
// rent of the recipient's account. The planner finds the end on the chain by itself.
func TestSwapOnALocalChain(t *testing.T) {
	t.Parallel()
	l := newLocalSwap(t, 99)
	before := l.lamports(l.payer.PublicKey())
	purposes, ended, err := l.runToEnd()
	if err != nil || ended == nil || ended.Purpose != txmgr.PurposeExecute {
		t.Fatalf("drafts %v landed, end is %+v, error %v; want an execution", purposes, ended, err)
	}
	if diff := cmp.Diff([]txmgr.Purpose{txmgr.PurposeExecute}, purposes); diff != "" {
		t.Errorf("landed drafts (-want +got)\n%s", diff)
	}
	if got := l.tokens(); got < l.swap.Terms.MinOutput {
		t.Errorf("the recipient got %d, want %d or more", got, l.swap.Terms.MinOutput)
	}
	for what, at := range map[string]solana.PublicKey{"state": l.swap.State, "wrapped SOL": l.swap.WSOL, "output": l.swap.Output} {
		if n := l.lamports(at); n != 0 {
			t.Errorf("the account %s has %d lamports, want 0", what, n)
		}
	}
	const fees = 5000
	if got, want := before-l.lamports(l.payer.PublicKey()), uint64(tokenRent+fees)-stateRent; got != want {
		t.Errorf("the swap cost the relay %d lamports, want %d: the recipient's account and fees, less the state's rent", got, want)
	}
	if !slices.Equal(l.observer.rejected, nil) || !slices.Equal(l.observer.deferrals, nil) {
		t.Errorf("observed %+v, want no deferrals and no rejections", l.observer)
	}
}

// hostileRouter is a router that answers a swap wrongly, and what becomes of the swap.
type hostileRouter struct {
	minimum  uint64 // in hundredths of the market's price
	settings localrouter.Settings
	reason   string
	rejected []string // rejections by the planner
}

func hostileRouters() map[string]hostileRouter {
	lie := func(lies ...localrouter.Lie) localrouter.Settings {
		var s localrouter.Settings
		for _, kind := range lies {
			rule := localrouter.LieRule{Lie: kind}
			if kind == localrouter.PayerAccount || kind == localrouter.PayerWritable {
				rule.Account = keyOf("payer").PublicKey()
			}
			s.Lies = append(s.Lies, rule)
		}
		return s
	}
	writes := func(who string) localrouter.Settings {
		s := lie(localrouter.PayerWritable)
		s.Lies[0].Account = keyOf(who).PublicKey()
		return s
	}
	return map[string]hostileRouter{
		"another mint":                         {99, lie(localrouter.WrongMint), swap.ReasonRouteRejected, nil},
		"another amount":                       {99, lie(localrouter.WrongAmount), swap.ReasonRouteRejected, nil},
		"a quote of twice the market's output": {150, lie(localrouter.LowThreshold), swap.ReasonExecutionFailed, nil},
		"another program":                      {99, lie(localrouter.WrongProgram), swap.ReasonRouteRejected, []string{swap.RejectedProgram}},
		"the payer signs":                      {99, lie(localrouter.PayerAccount), swap.ReasonRouteRejected, nil},
		"the payer is written":                 {99, lie(localrouter.PayerWritable), swap.ReasonRouteRejected, []string{swap.RejectedAccount}},
		"another payer is written":             {99, writes("other"), swap.ReasonRouteRejected, []string{swap.RejectedAccount}},
		"the recipient is written":             {99, writes("wallet"), swap.ReasonRouteRejected, []string{swap.RejectedAccount}},
		"a stranger signs":                     {99, lie(localrouter.ExtraSigner), swap.ReasonRouteRejected, nil},
		"an instruction of another user":       {99, lie(localrouter.OtherUser), swap.ReasonRouteRejected, nil},
		"half of the output":                   {99, lie(localrouter.ShortOutput), swap.ReasonExecutionFailed, nil},
		"half of the input":                    {40, lie(localrouter.PartialFill), swap.ReasonExecutionFailed, nil},
		"a table that does not exist":          {99, lie(localrouter.BogusTable), swap.ReasonRouteRejected, []string{swap.RejectedTable}},
		"an account that is not a table":       {99, lie(localrouter.ForeignTable), swap.ReasonRouteRejected, []string{swap.RejectedTable}},
		"a page of HTML":                       {99, lie(localrouter.Garbage), swap.ReasonRouterUnavailable, nil},
		"half of an answer":                    {99, lie(localrouter.Truncated), swap.ReasonRouterUnavailable, nil},
		"an answer of 16 MiB":                  {99, lie(localrouter.Huge), swap.ReasonRouterUnavailable, nil},
		"a router that is down":                {99, localrouter.Settings{Faults: []fault.Rule{{Status: 503}}}, swap.ReasonRouterUnavailable, nil},
		"a router that limits requests":        {99, localrouter.Settings{Faults: []fault.Rule{{Status: 429, RetryAfter: 9 * time.Second}}}, swap.ReasonRouterUnavailable, nil},
	}
}

// TestHostileRouterOnALocalChain: wrong answers of a router cost the user neither
// tokens nor lamports, and do not prevent the refund.
func TestHostileRouterOnALocalChain(t *testing.T) {
	t.Parallel()
	for name, test := range hostileRouters() {
		for _, format := range []shieldpool.Format{shieldpool.V0, shieldpool.V1} {
			if format == shieldpool.V1 && slices.Contains(test.rejected, swap.RejectedTable) {
				continue // v1 reads no tables
			}
			t.Run(name+", "+string(format), func(t *testing.T) {
				t.Parallel()
				l := newLocalSwap(t, test.minimum, format)
				if err := l.Router().Set(test.settings); err != nil {
					t.Fatal(err)
				}
				_, ended, err := l.runToEnd()
				var wait *txmgr.Deferral
				if !errors.As(err, &wait) || wait.Reason != test.reason || ended != nil {
					t.Fatalf("end is %+v, error %v, want a deferral for %s", ended, err, test.reason)
				}
				if diff := cmp.Diff(test.rejected, l.observer.rejected); diff != "" {
					t.Errorf("rejections by the planner (-want +got)\n%s", diff)
				}
				l.checkRefund(0)
			})
		}
	}
}

// TestASecondRouterExecutesWhatAHostileOneWouldNot: a router that lies, in any of its ways, or is
// down does not keep a swap from its execution when another router is honest.
func TestASecondRouterExecutesWhatAHostileOneWouldNot(t *testing.T) {
	t.Parallel()
	for name, test := range hostileRouters() {
		if test.minimum > 100 {
			continue // no honest route gives that much
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLocalSwap(t, test.minimum)
			// The chain has one router, so it is set anew before each call.
			serve := func(settings localrouter.Settings) string {
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if err := l.Router().Set(settings); err != nil {
						t.Error(err)
					}
					l.Router().ServeHTTP(w, r)
				}))
				t.Cleanup(server.Close)
				return server.URL
			}
			urls := []string{serve(test.settings), serve(localrouter.Settings{})}
			l.planWith(urls...)
			for range 3 {
				_, ended, err := l.runToEnd()
				var wait *txmgr.Deferral
				switch {
				case errors.As(err, &wait):
					l.tries++
					l.planWith(urls...) // another process makes the next try
					continue
				case err != nil || ended.Purpose != txmgr.PurposeExecute:
					t.Fatalf("end is %+v, error %v, want an execution", ended, err)
				}
				if got := l.tokens(); got < l.swap.Terms.MinOutput {
					t.Errorf("the recipient got %d, want %d or more", got, l.swap.Terms.MinOutput)
				}
				return
			}
			t.Errorf("after three tries the swap is not executed: deferred for %v", l.observer.deferrals)
		})
	}
}

// TestRefundOfWrappedLamports: a stranger wraps the swap's lamports, which changes only the
// form of the refund.
func TestRefundOfWrappedLamports(t *testing.T) {
	t.Parallel()
	l := newLocalSwap(t, 101) // a minimum that the market never reaches
	l.land(func(hash solana.Hash) (*solana.Transaction, error) {
		prepare := must[solana.Instruction](t)(l.swap.Prepare(l.payer.PublicKey()))
		return shieldpool.Versioned(l.payer.PublicKey(), shieldpool.Compute{Limit: 400_000}, hash, nil,
			append(l.swap.CreateAccounts(l.payer.PublicKey(), l.wallet), prepare)...)
	})
	if _, err := l.step(); !waitsFor(err, swap.ReasonPrice) {
		t.Fatalf("error is %v, want a wait for the price", err)
	}
	l.checkRefund(tokenRent)
}

func waitsFor(err error, reason string) bool {
	var wait *txmgr.Deferral
	return errors.As(err, &wait) && wait.Reason == reason
}

// TestPriceMovesAwayAndBack: the swap waits, spends nothing, and succeeds late.
func TestPriceMovesAwayAndBack(t *testing.T) {
	t.Parallel()
	l := newLocalSwap(t, 99)
	before, state := l.lamports(l.payer.PublicKey()), must[*market.State](t)(l.MarketState())
	move := func(tokens uint64) {
		t.Helper()
		if err := l.SetReserves(market.Reserves{Lamports: state.Lamports, Tokens: tokens}); err != nil {
			t.Fatal(err)
		}
		l.Advance(3)
	}
	move(state.Tokens / 2)
	for range 3 {
		if _, err := l.step(); !waitsFor(err, swap.ReasonPrice) {
			t.Fatalf("error is %v, want a wait for the price", err)
		}
		l.Advance(20)
	}
	if got := l.lamports(l.payer.PublicKey()); got != before {
		t.Errorf("waiting for the price cost %d lamports, want 0", before-got)
	}
	move(state.Tokens)
	if purposes, ended, err := l.runToEnd(); err != nil || ended == nil || ended.Purpose != txmgr.PurposeExecute {
		t.Errorf("drafts %v landed, end is %+v, error %v; want an execution", purposes, ended, err)
	}
}

// TestFrozenRecipient: nothing is sent while the recipient's account cannot receive tokens.
func TestFrozenRecipient(t *testing.T) {
	t.Parallel()
	l := newLocalSwap(t, 99)
	if _, _, err := l.MintTo(localnet.OutputMint(), l.wallet, 1); err != nil { // makes the account
		t.Fatal(err)
	}
	l.Advance(3)
	must[solana.Signature](t)(l.Freeze(localnet.OutputMint(), l.wallet))
	l.Advance(3)
	if _, err := l.step(); !waitsFor(err, swap.ReasonRecipientFrozen) {
		t.Fatalf("error is %v, want a wait for the recipient", err)
	}
	must[solana.Signature](t)(l.Thaw(localnet.OutputMint(), l.wallet))
	l.Advance(3)
	if purposes, ended, err := l.runToEnd(); err != nil || ended == nil || ended.Purpose != txmgr.PurposeExecute {
		t.Errorf("drafts %v landed, end is %+v, error %v; want an execution", purposes, ended, err)
	}
}

// TestWideRoutes: when a route fits no transaction, narrower routes are requested until
// one lands.
func TestWideRoutes(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]localrouter.Settings{
		"in the router's table": {Wide: 60}, "outside the router's table": {Wide: 60, Outside: true}, "as wide as possible": {Wide: 256, Outside: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLocalSwap(t, 99)
			if err := l.Router().Set(settings); err != nil {
				t.Fatal(err)
			}
			purposes, ended, err := l.runToEnd()
			if err != nil || ended == nil || ended.Purpose != txmgr.PurposeExecute {
				t.Fatalf("drafts %v landed, end is %+v, error %v; want an execution", purposes, ended, err)
			}
			if n := l.Router().Stats().Calls[localrouter.CallInstructions]; n < 2 {
				t.Errorf("instructions were requested %d times, want at least 2, with a narrower route", n)
			}
		})
	}
}

// TestRefundByStrangerIsFound: the planner finds that a stranger has refunded the swap,
// and drafts nothing.
func TestRefundByStrangerIsFound(t *testing.T) {
	t.Parallel()
	l := newLocalSwap(t, 99)
	l.advanceToTimeout()
	l.land(func(hash solana.Hash) (*solana.Transaction, error) {
		refund := must[solana.Instruction](t)(l.swap.Close(l.payer.PublicKey(), l.wallet, false))
		return shieldpool.Versioned(l.payer.PublicKey(), shieldpool.Compute{Limit: 400_000}, hash, nil, refund)
	})
	// Lamports at the state's address are not a swap state.
	if err := l.Fund(l.swap.State, deposit); err != nil {
		t.Fatal(err)
	}
	l.Advance(3)
	purposes, ended, err := l.runToEnd()
	if err != nil || ended == nil || ended.Purpose != txmgr.PurposeRefund || purposes != nil {
		t.Errorf("drafts %v landed, end is %+v, error %v; want no draft, and a refund", purposes, ended, err)
	}
}

// TestChainErrorIsNotADeferral: a chain that does not answer gives an error, not a
// deferral.
func TestChainErrorIsNotADeferral(t *testing.T) {
	t.Parallel()
	l := newLocalSwap(t, 99)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if order, err := l.planner.Next(ctx, l.submission, 0, 0); !errors.Is(err, onchain.ErrUnavailable) || errors.As(err, new(*txmgr.Deferral)) || order.Draft != nil {
		t.Errorf("order is %+v, %v, want the chain's error", order, err)
	}
}
