package feepayer_test

import (
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/hack/localnet/trapdoor"
	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/internal/feepayer"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// lyingEndpoint reports one lamport for every account while lies is set.
type lyingEndpoint struct {
	http.Handler
	lies atomic.Bool
}

var lamportsOf = regexp.MustCompile(`"lamports":\s*\d+`)

func (p *lyingEndpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.lies.Load() {
		p.Handler.ServeHTTP(w, r)
		return
	}
	truth := httptest.NewRecorder()
	p.Handler.ServeHTTP(truth, r)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(truth.Code)
	_, _ = w.Write(lamportsOf.ReplaceAll(truth.Body.Bytes(), []byte(`"lamports":1`))) // the client notices a failed write
}

// newReader makes the relay's client of the endpoints, which prefers the first one.
func newReader(t *testing.T, endpoints ...http.Handler) *chain.Endpoints {
	t.Helper()
	o := chain.EndpointsOptions{Genesis: localnet.GenesisHash, Now: time.Now, Rand: func() float64 { return 0 }, Log: slog.New(slog.DiscardHandler)}
	for i, handler := range endpoints {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		o.Endpoints = append(o.Endpoints, chain.Endpoint{Name: strconv.Itoa(i), URL: server.URL, WebSocketURL: chain.NoWebSocket})
	}
	e := must[*chain.Endpoints](t)(chain.NewEndpoints(o))
	t.Cleanup(e.Close)
	return e
}

// TestPayersWithALyingEndpoint: the endpoint that is asked first always reports
// that the payers have no lamports, or one each.
func TestPayersWithALyingEndpoint(t *testing.T) {
	t.Parallel()
	for name, lie := range map[string]func(liar *lyingEndpoint, c *localnet.Chain) error{
		"nothing": func(_ *lyingEndpoint, c *localnet.Chain) error {
			return c.Endpoint("liar").SetFaults([]fault.Rule{{Method: "getMultipleAccounts", Empty: true}})
		},
		"one lamport": func(liar *lyingEndpoint, _ *localnet.Chain) error {
			liar.lies.Store(true)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkPayersWithALiar(t, lie)
		})
	}
}

func checkPayersWithALiar(t *testing.T, lie func(*lyingEndpoint, *localnet.Chain) error) {
	t.Helper()
	const sol = solana.LAMPORTS_PER_SOL
	verifyingKey := must[[]byte](t)(trapdoor.New("payers", shieldpool.SignalCount).VerifyingKey())
	c := must[*localnet.Chain](t)(localnet.New(localnet.Options{VerifyingKey: verifyingKey}))
	liar := &lyingEndpoint{Handler: c.Endpoint("liar")}
	keys := []txmgr.Payer{must[*feepayer.Key](t)(feepayer.Generate(rand.Reader)), must[*feepayer.Key](t)(feepayer.Generate(rand.Reader))}
	now := time.Now()
	advance := func() { now = now.Add(time.Minute); c.Advance(5) }
	fund := func(key solana.PublicKey, lamports uint64) {
		t.Helper()
		if err := c.Fund(key, lamports); err != nil {
			t.Fatal(err)
		}
		advance()
	}
	fund(keys[0].PublicKey(), sol)
	funded := 0
	p := must[*feepayer.Payers](t)(feepayer.New(feepayer.Options{
		Keys: keys, Balances: newReader(t, liar, c.Endpoint("honest")), Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Now: func() time.Time { return now }, MinBalance: sol / 100, Funded: func() { funded++ },
	}))
	checkStates := func(first, second feepayer.State) {
		t.Helper()
		advance()
		if err := p.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, want := range []feepayer.State{first, second} {
			if got := p.Balances()[i]; got.State != want {
				t.Errorf("payer %d is %+v, want state %s", i, got, want)
			}
		}
	}

	// The second payer's account does not exist, and the first payer is funded. The first stays
	// ready, whatever the liar reports.
	checkStates(feepayer.StateReady, feepayer.StateDry)
	if err := lie(liar, c); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		checkStates(feepayer.StateReady, feepayer.StateDry)
	}
	// The same holds when no payer is dry. A read then asks only one endpoint at first.
	fund(keys[1].PublicKey(), sol)
	for range 4 {
		checkStates(feepayer.StateReady, feepayer.StateReady)
	}
	drain(t, c, keys[1], sol)
	checkStates(feepayer.StateReady, feepayer.StateDry)

	// A transfer empties the first payer: both endpoints report it, and no payer can pay.
	payer := must[txmgr.Payer](t)(p.Pick(t.Context(), sol/100, false))
	drain(t, c, payer, sol)
	checkStates(feepayer.StateDry, feepayer.StateDry)
	_, err := p.Pick(t.Context(), sol/100, false)
	if r, ok := refusal.As(err); !ok || r.Code != refusal.FeePayerEmpty {
		t.Errorf("error is %v, want the refusal fee_payer_empty", err)
	}

	// The liar cannot hide that the second payer is funded.
	fund(keys[1].PublicKey(), sol)
	payer, err = p.Pick(t.Context(), sol/100, false)
	if err != nil || payer.PublicKey() != keys[1].PublicKey() || funded != 1 {
		t.Errorf("after funding, the payer is %v (error %v) and Funded was called %d times; want the second payer, and one call", payer, err, funded)
	}
}

// drain transfers all lamports away from a payer.
func drain(t *testing.T, c *localnet.Chain, payer txmgr.Payer, lamports uint64) {
	t.Helper()
	client := rpc.New(serve(t, c))
	hash := must[*rpc.GetLatestBlockhashResult](t)(client.GetLatestBlockhash(t.Context(), rpc.CommitmentConfirmed)).Value.Blockhash
	all := system.NewTransferInstruction(lamports-5000, payer.PublicKey(), solana.PublicKey{7}).Build()
	tx := must[*solana.Transaction](t)(solana.NewTransaction([]solana.Instruction{all}, hash, solana.TransactionPayer(payer.PublicKey())))
	tx.Signatures = []solana.Signature{must[solana.Signature](t)(payer.Sign(t.Context(), must[[]byte](t)(tx.Message.MarshalBinary())))}
	must[solana.Signature](t)(client.SendTransactionWithOpts(t.Context(), tx, rpc.TransactionOpts{SkipPreflight: true}))
}

func serve(t *testing.T, c *localnet.Chain) string {
	t.Helper()
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	return server.URL
}
