package swap_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"log/slog"
	"math/rand/v2"
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
	stateRent = 2_011_440
	tokenRent = 2_039_280
)

// counted is what a planner has counted.
type counted struct{ waits, hostile []string }

func (c *counted) SwapDeferred(reason string) { c.waits = append(c.waits, reason) }
func (c *counted) RouteRejected(what string)  { c.hostile = append(c.hostile, what) }

type payerKeys []solana.PublicKey

func (k payerKeys) Keys() []solana.PublicKey { return k }

// local is a local chain with its router, whose slots the test advances, and one swap on it
// that was funded a few slots ago.
type local struct {
	*localnet.Chain
	t   *testing.T
	rpc *chain.Endpoints
	// node reads blockhashes, because rpc caches them by the clock.
	node   *rpc.Client
	pool   *shieldpool.Pool
	payer  solana.PrivateKey
	wallet solana.PublicKey
	saga   *swap.Planner
	seen   counted
	swap   *shieldpool.Swap
	c      *submission.Submission
	net    uint64
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

// newLocal makes a chain, and a swap whose minimum is that percentage of the market's price.
func newLocal(t *testing.T, minimum uint64) *local {
	t.Helper()
	keys := trapdoor.New("swap", shieldpool.SignalCount)
	l := &local{t: t, payer: keyOf("payer"), wallet: keyOf("wallet").PublicKey()}
	l.Chain = must[*localnet.Chain](t)(localnet.New(localnet.Options{VerifyingKey: must[[]byte](t)(keys.VerifyingKey()), Initialised: true}))
	server, routing := httptest.NewServer(l.Chain), httptest.NewServer(l.Router())
	l.rpc = must[*chain.Endpoints](t)(chain.NewEndpoints(chain.EndpointsOptions{
		Endpoints: []chain.Endpoint{{Name: "local", URL: server.URL}}, Genesis: localnet.GenesisHash,
		Now: time.Now, Rand: rand.Float64, Log: slog.New(slog.DiscardHandler),
	}))
	transport := rpc.NewHTTPClient()
	l.node = must[*rpc.Client](t)(rpc.New(rpc.Options{URL: server.URL, HTTP: transport, Now: time.Now}))
	// The clock of router and planner stands still, so that no quote is too old on a slow
	// machine.
	now := time.Now()
	clock := func() time.Time { return now }
	client := must[*router.Client](t)(router.New(router.Options{
		BaseURL: routing.URL, HTTP: router.NewHTTPClient(), Now: clock, Rand: rand.Float64, Log: slog.New(slog.DiscardHandler), Timeout: time.Minute,
	}))
	t.Cleanup(func() {
		client.Close()
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
	l.saga = must[*swap.Planner](t)(swap.New(swap.Options{
		Chain: l.rpc, Router: client, Pool: l.pool, RouterProgram: market.ProgramID, Payers: payerKeys{l.payer.PublicKey(), keyOf("other").PublicKey()},
		SlippageBps: 50, Observer: &l.seen, Log: slog.New(slog.DiscardHandler), Now: clock,
	}))
	l.begin(keys, now, minimum)
	return l
}

// begin lands the first leg.
func (l *local) begin(keys *trapdoor.Key, now time.Time, minimum uint64) {
	l.t.Helper()
	var ok bool
	if l.net, ok = l.pool.Profile.Fees.Net(deposit); !ok {
		l.t.Fatal("the fee takes it all")
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
	began := l.land(func(hash solana.Hash) (*solana.Transaction, error) {
		return l.pool.Transaction(l.payer.PublicKey(), call, shieldpool.Compute{Limit: 400_000, Price: 1}, hash, nil)
	})
	parent := uuid.New()
	l.c = &submission.Submission{
		ID: uuid.New(), Parent: &parent, Kind: submission.KindSwapExecution, State: submission.Processing, Call: call, CreatedAt: now,
		Swap: &submission.Swap{Phase: submission.PhaseFunded, TimeoutSlot: began + l.pool.Profile.SwapTimeout},
	}
}

// land signs and sends a transaction of the payer's, and returns the slot in which it landed,
// which is then confirmed.
func (l *local) land(build func(solana.Hash) (*solana.Transaction, error)) (slot uint64) {
	l.t.Helper()
	ctx := l.t.Context()
	hash := must[onchain.Blockhash](l.t)(l.node.LatestBlockhash(ctx))
	tx := must[*solana.Transaction](l.t)(build(hash.Hash))
	tx.Signatures = []solana.Signature{must[solana.Signature](l.t)(l.payer.Sign(must[[]byte](l.t)(tx.Message.MarshalBinary())))}
	if err := l.rpc.Send(ctx, must[[]byte](l.t)(tx.MarshalBinary()), true, 0); err != nil {
		l.t.Fatalf("send: %v", err)
	}
	l.Advance(localnet.DefaultConfirmAfter + 1)
	statuses, _, err := l.rpc.Statuses(ctx, tx.Signatures)
	if err != nil || statuses[0] == nil || statuses[0].Err != nil {
		l.t.Fatalf("status is %+v, %v, want a success", statuses, err)
	}
	return statuses[0].Slot
}

// step carries out the planner's order as the engine does: it simulates a draft, and lands it when
// it would succeed.
func (l *local) step() (swap.Order, error) {
	l.t.Helper()
	order, err := l.saga.Next(l.t.Context(), l.c, 0)
	if err != nil || order.Draft == nil {
		return order, err
	}
	build := func(hash solana.Hash) (*solana.Transaction, error) {
		return order.Draft.Build(l.payer.PublicKey(), shieldpool.Compute{Limit: 1_400_000}, hash)
	}
	tx, err := build(solana.Hash{})
	if err != nil {
		return order, err
	}
	tx.Signatures = make([]solana.Signature, 1)
	sim := must[onchain.Simulation](l.t)(l.rpc.Simulate(l.t.Context(), must[[]byte](l.t)(tx.MarshalBinary()), true, 0))
	if sim.Err != nil {
		return order, l.saga.Rejected(l.c, order.Draft, &txmgr.Failure{Err: sim.Err})
	}
	l.land(build)
	return order, nil
}

// steps repeats step until the swap has ended or an error comes. It returns the purposes of the
// drafts that landed.
func (l *local) steps() (done []txmgr.Purpose, settled *txmgr.Landing, err error) {
	l.t.Helper()
	for range 5 {
		order, err := l.step()
		if err != nil || order.Ended != nil {
			return done, order.Ended, err
		}
		done = append(done, order.Draft.Purpose)
	}
	l.t.Fatalf("it goes on for ever: %v", done)
	return nil, nil, nil
}

func (l *local) lamports(of solana.PublicKey) uint64 {
	l.t.Helper()
	n, _, err := l.rpc.Balance(l.t.Context(), of, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	return n
}

// tokens is the recipient's balance; 0 without an account.
func (l *local) tokens() uint64 {
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

// toTimeout lets the timeout slot pass, and be confirmed.
func (l *local) toTimeout() {
	l.t.Helper()
	slot := must[uint64](l.t)(l.rpc.Slot(l.t.Context(), onchain.Confirmed))
	if slot < l.c.Swap.TimeoutSlot {
		l.Advance(l.c.Swap.TimeoutSlot - slot)
	}
}

// refunded lets the timeout pass, and checks that the recipient's wallet gets the swap's
// lamports, the state's rent and also.
func (l *local) refunded(also uint64) {
	l.t.Helper()
	l.toTimeout()
	had := l.lamports(l.wallet)
	done, settled, err := l.steps()
	if err != nil || settled == nil || settled.Purpose != txmgr.PurposeRefund || !slices.Equal(done, []txmgr.Purpose{txmgr.PurposeRefund}) {
		l.t.Fatalf("past the timeout %v was done, and found %+v, %v: want a refund", done, settled, err)
	}
	if got, want := l.lamports(l.wallet)-had, l.net+stateRent+also; got != want || l.lamports(l.swap.State) != 0 {
		l.t.Errorf("the wallet got %d lamports, want %d; the state holds %d", got, want, l.lamports(l.swap.State))
	}
	if l.tokens() != 0 {
		l.t.Errorf("the recipient has %d tokens of a swap that was refunded", l.tokens())
	}
}

// TestSwapOnALocalChain: the recipient gets tokens, and the relay pays only the fee and the
// rent of the recipient's account. The planner finds the end on the chain by itself.
func TestSwapOnALocalChain(t *testing.T) {
	t.Parallel()
	l := newLocal(t, 99)
	had := l.lamports(l.payer.PublicKey())
	done, settled, err := l.steps()
	if err != nil || settled == nil || settled.Purpose != txmgr.PurposeExecute {
		t.Fatalf("%v was done, and found %+v, %v: want an execution", done, settled, err)
	}
	if diff := cmp.Diff([]txmgr.Purpose{txmgr.PurposeExecute}, done); diff != "" {
		t.Errorf("done (-want +got)\n%s", diff)
	}
	if got := l.tokens(); got < l.swap.Terms.MinOutput {
		t.Errorf("the recipient got %d, want %d or more", got, l.swap.Terms.MinOutput)
	}
	for what, at := range map[string]solana.PublicKey{"state": l.swap.State, "wrapped SOL": l.swap.WSOL, "output": l.swap.Output} {
		if n := l.lamports(at); n != 0 {
			t.Errorf("the account of the %s holds %d lamports", what, n)
		}
	}
	const fees = 5000
	if got, want := had-l.lamports(l.payer.PublicKey()), uint64(tokenRent+fees)-stateRent; got != want {
		t.Errorf("it cost %d lamports, want the recipient's account and fees, less the state's rent: %d", got, want)
	}
	if !slices.Equal(l.seen.hostile, nil) || !slices.Equal(l.seen.waits, nil) {
		t.Errorf("told of %+v", l.seen)
	}
}

// TestHostileRouterOnALocalChain: a router's lies cost the user neither tokens nor lamports, and do
// not prevent the refund.
func TestHostileRouterOnALocalChain(t *testing.T) {
	t.Parallel()
	lie := func(lies ...localrouter.Lie) localrouter.Settings {
		var s localrouter.Settings
		for _, one := range lies {
			rule := localrouter.LieRule{Lie: one}
			if one == localrouter.PayerAccount || one == localrouter.PayerWritable {
				rule.Account = keyOf("payer").PublicKey()
			}
			s.Lies = append(s.Lies, rule)
		}
		return s
	}
	others := func(who string) localrouter.Settings {
		s := lie(localrouter.PayerWritable)
		s.Lies[0].Account = keyOf(who).PublicKey()
		return s
	}
	tests := map[string]struct {
		minimum  uint64 // in hundredths of the market's price
		settings localrouter.Settings
		reason   string
		what     []string // as found by the planner
	}{
		"another mint":                         {99, lie(localrouter.WrongMint), swap.ReasonRouteRejected, nil},
		"another amount":                       {99, lie(localrouter.WrongAmount), swap.ReasonRouteRejected, nil},
		"a quote of twice the market's output": {150, lie(localrouter.LowThreshold), swap.ReasonExecutionFailed, nil},
		"another program":                      {99, lie(localrouter.WrongProgram), swap.ReasonRouteRejected, []string{swap.RejectedProgram}},
		"the payer signs":                      {99, lie(localrouter.PayerAccount), swap.ReasonRouteRejected, nil},
		"the payer is written":                 {99, lie(localrouter.PayerWritable), swap.ReasonRouteRejected, []string{swap.RejectedAccount}},
		"another payer is written":             {99, others("other"), swap.ReasonRouteRejected, []string{swap.RejectedAccount}},
		"the recipient is written":             {99, others("wallet"), swap.ReasonRouteRejected, []string{swap.RejectedAccount}},
		"a stranger signs":                     {99, lie(localrouter.ExtraSigner), swap.ReasonRouteRejected, nil},
		"an instruction of another user":       {99, lie(localrouter.OtherUser), swap.ReasonRouteRejected, nil},
		"half of the output":                   {99, lie(localrouter.ShortOutput), swap.ReasonExecutionFailed, nil},
		"half of the input":                    {40, lie(localrouter.PartialFill), swap.ReasonExecutionFailed, nil},
		"a table that does not exist":          {99, lie(localrouter.BogusTable), swap.ReasonRouteRejected, []string{swap.RejectedTable}},
		"an account that is no table":          {99, lie(localrouter.ForeignTable), swap.ReasonRouteRejected, []string{swap.RejectedTable}},
		"a page of HTML":                       {99, lie(localrouter.Garbage), swap.ReasonRouterUnavailable, nil},
		"half of an answer":                    {99, lie(localrouter.Truncated), swap.ReasonRouterUnavailable, nil},
		"an answer of 16 MiB":                  {99, lie(localrouter.Huge), swap.ReasonRouterUnavailable, nil},
		"a router that is down":                {99, localrouter.Settings{Faults: []fault.Rule{{Status: 503}}}, swap.ReasonRouterUnavailable, nil},
		"a router that limits requests":        {99, localrouter.Settings{Faults: []fault.Rule{{Status: 429, RetryAfter: 9 * time.Second}}}, swap.ReasonRouterUnavailable, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLocal(t, test.minimum)
			if err := l.Router().Set(test.settings); err != nil {
				t.Fatal(err)
			}
			_, settled, err := l.steps()
			var wait *txmgr.Deferral
			if !errors.As(err, &wait) || wait.Reason != test.reason || settled != nil {
				t.Fatalf("it ends with %+v, %v, want a wait for %s", settled, err, test.reason)
			}
			if diff := cmp.Diff(test.what, l.seen.hostile); diff != "" {
				t.Errorf("found hostile (-want +got)\n%s", diff)
			}
			l.refunded(0)
		})
	}
}

// TestRefundOfWrappedLamports: a stranger wraps the swap's lamports, which changes only the
// form of the refund.
func TestRefundOfWrappedLamports(t *testing.T) {
	t.Parallel()
	l := newLocal(t, 101) // a minimum that the market never reaches
	l.land(func(hash solana.Hash) (*solana.Transaction, error) {
		prepare := must[solana.Instruction](t)(l.swap.Prepare(l.payer.PublicKey()))
		return shieldpool.Versioned(l.payer.PublicKey(), shieldpool.Compute{Limit: 400_000}, hash, nil,
			append(l.swap.Accounts(l.payer.PublicKey(), l.wallet), prepare)...)
	})
	if _, err := l.step(); !waitsFor(err, swap.ReasonPrice) {
		t.Fatalf("error is %v, want a wait for the price", err)
	}
	l.refunded(tokenRent)
}

func waitsFor(err error, reason string) bool {
	var wait *txmgr.Deferral
	return errors.As(err, &wait) && wait.Reason == reason
}

// TestPriceMovesAwayAndBack: the swap waits, spends nothing, and succeeds late.
func TestPriceMovesAwayAndBack(t *testing.T) {
	t.Parallel()
	l := newLocal(t, 99)
	had, state := l.lamports(l.payer.PublicKey()), must[*market.State](t)(l.MarketState())
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
	if got := l.lamports(l.payer.PublicKey()); got != had {
		t.Errorf("a price that is too low cost %d lamports", had-got)
	}
	move(state.Tokens)
	if done, settled, err := l.steps(); err != nil || settled == nil || settled.Purpose != txmgr.PurposeExecute {
		t.Errorf("%v was done, and found %+v, %v: want an execution", done, settled, err)
	}
}

// TestFrozenRecipient: nothing is sent while the recipient's account cannot receive tokens.
func TestFrozenRecipient(t *testing.T) {
	t.Parallel()
	l := newLocal(t, 99)
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
	if done, settled, err := l.steps(); err != nil || settled == nil || settled.Purpose != txmgr.PurposeExecute {
		t.Errorf("%v was done, and found %+v, %v: want an execution", done, settled, err)
	}
}

// TestWideRoutes: routes that fit no transaction are asked for again, narrower,
// until one lands.
func TestWideRoutes(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]localrouter.Settings{
		"in the router's table": {Wide: 60}, "outside the router's table": {Wide: 60, Outside: true}, "as wide as can be": {Wide: 256, Outside: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLocal(t, 99)
			if err := l.Router().Set(settings); err != nil {
				t.Fatal(err)
			}
			done, settled, err := l.steps()
			if err != nil || settled == nil || settled.Purpose != txmgr.PurposeExecute {
				t.Fatalf("%v was done, and found %+v, %v: want an execution", done, settled, err)
			}
			if n := l.Router().Stats().Calls[localrouter.CallInstructions]; n < 2 {
				t.Errorf("instructions were asked for %d times, want narrower ones after the first", n)
			}
		})
	}
}

// TestStrangerRefunds: the planner finds an end that a stranger sent, and drafts nothing.
func TestStrangerRefunds(t *testing.T) {
	t.Parallel()
	l := newLocal(t, 99)
	l.toTimeout()
	l.land(func(hash solana.Hash) (*solana.Transaction, error) {
		refund := must[solana.Instruction](t)(l.swap.Close(l.payer.PublicKey(), l.wallet, false))
		return shieldpool.Versioned(l.payer.PublicKey(), shieldpool.Compute{Limit: 400_000}, hash, nil, refund)
	})
	// Lamports at the state's address are no swap state.
	if err := l.Fund(l.swap.State, deposit); err != nil {
		t.Fatal(err)
	}
	l.Advance(3)
	done, settled, err := l.steps()
	if err != nil || settled == nil || settled.Purpose != txmgr.PurposeRefund || done != nil {
		t.Errorf("%v was done, and found %+v, %v: want nothing, and a refund", done, settled, err)
	}
}

// TestNoChainNoOrder: a chain that does not answer gives an error, not a deferral.
func TestNoChainNoOrder(t *testing.T) {
	t.Parallel()
	l := newLocal(t, 99)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if order, err := l.saga.Next(ctx, l.c, 0); !errors.Is(err, onchain.ErrUnavailable) || errors.As(err, new(*txmgr.Deferral)) || order.Draft != nil {
		t.Errorf("order is %+v, %v, want the chain's error", order, err)
	}
}
