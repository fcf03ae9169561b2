package feepayer_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http/httptest"
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

// turns asks its readers in turn.
type turns struct {
	readers []feepayer.BalanceReader
	n       int
}

func (t *turns) Balances(ctx context.Context, keys []solana.PublicKey) (lamports []uint64, slot uint64, err error) {
	t.n++
	return t.readers[t.n%len(t.readers)].Balances(ctx, keys)
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// reader is the relay's client of one endpoint of the chain.
func reader(t *testing.T, c *localnet.Chain, name string) feepayer.BalanceReader {
	t.Helper()
	server := httptest.NewServer(c.Endpoint(name))
	t.Cleanup(server.Close)
	e := must[*chain.Endpoints](t)(chain.NewEndpoints(chain.EndpointsOptions{
		Endpoints: []chain.Endpoint{{Name: name, URL: server.URL, WebSocketURL: chain.NoWebSocket}}, Genesis: localnet.GenesisHash,
		Now: time.Now, Rand: func() float64 { return 0 }, Log: slog.New(slog.DiscardHandler),
	}))
	t.Cleanup(e.Close)
	return e
}

func TestPayersOnAChainWithALyingEndpoint(t *testing.T) {
	t.Parallel()
	const sol = solana.LAMPORTS_PER_SOL
	verifyingKey := must[[]byte](t)(trapdoor.New("payers", shieldpool.SignalCount).VerifyingKey())
	c := must[*localnet.Chain](t)(localnet.New(localnet.Options{VerifyingKey: verifyingKey}))
	honest, liar := reader(t, c, "honest"), reader(t, c, "liar")
	keys := []*feepayer.Key{must[*feepayer.Key](t)(feepayer.Generate(rand.Reader)), must[*feepayer.Key](t)(feepayer.Generate(rand.Reader))}
	now := time.Now()
	later := func() { now = now.Add(time.Minute); c.Advance(5) }
	fund := func(key solana.PublicKey, lamports uint64) {
		t.Helper()
		if err := c.Fund(key, lamports); err != nil {
			t.Fatal(err)
		}
		later()
	}
	fund(keys[0].PublicKey(), sol)
	funded := 0
	p := must[*feepayer.Payers](t)(feepayer.New(feepayer.Options{
		Keys: keys, Balances: &turns{readers: []feepayer.BalanceReader{liar, honest}}, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Now: func() time.Time { return now }, MinBalance: sol / 100, Funded: func() { funded++ },
	}))
	states := func(first, second feepayer.State) {
		t.Helper()
		later()
		if err := p.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, want := range []feepayer.State{first, second} {
			if got := p.Balances()[i]; got.State != want {
				t.Errorf("payer %d is %+v, want it %s", i, got, want)
			}
		}
	}

	// The second has never existed; the first is rich, regardless of the liar's reports.
	states(feepayer.StateReady, feepayer.StateDry)
	lie := []fault.Rule{{Method: "getMultipleAccounts", Empty: true}, {Method: "getBalance", Empty: true}}
	if err := c.Endpoint("liar").SetFaults(lie); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		states(feepayer.StateReady, feepayer.StateDry)
	}

	// A transfer empties the first: both endpoints report it, and no payer can pay.
	payer := must[txmgr.Payer](t)(p.Pick(t.Context(), sol/100, false))
	client := rpc.New(serve(t, c))
	hash := must[*rpc.GetLatestBlockhashResult](t)(client.GetLatestBlockhash(t.Context(), rpc.CommitmentConfirmed)).Value.Blockhash
	all := system.NewTransferInstruction(sol-5000, payer.PublicKey(), solana.PublicKey{7}).Build()
	tx := must[*solana.Transaction](t)(solana.NewTransaction([]solana.Instruction{all}, hash, solana.TransactionPayer(payer.PublicKey())))
	tx.Signatures = []solana.Signature{must[solana.Signature](t)(payer.Sign(must[[]byte](t)(tx.Message.MarshalBinary())))}
	must[solana.Signature](t)(client.SendTransactionWithOpts(t.Context(), tx, rpc.TransactionOpts{SkipPreflight: true}))
	states(feepayer.StateDry, feepayer.StateDry)
	_, err := p.Pick(t.Context(), sol/100, false)
	if r, ok := refusal.As(err); !ok || r.Code != refusal.FeePayerEmpty {
		t.Errorf("error is %v, want the refusal fee_payer_empty", err)
	}

	// The next request that reaches the honest endpoint shows that the other one is funded.
	fund(keys[1].PublicKey(), sol)
	for range 2 {
		later()
		payer, err = p.Pick(t.Context(), sol/100, false)
	}
	if err != nil || payer.PublicKey() != keys[1].PublicKey() || funded != 1 {
		t.Errorf("after funding %v pays (%v), and it was told %d times; want the second, once", payer, err, funded)
	}
}

func serve(t *testing.T, c *localnet.Chain) string {
	t.Helper()
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	return server.URL
}
