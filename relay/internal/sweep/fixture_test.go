package sweep_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/hack/localnet/trapdoor"
	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/internal/feepayer"
	"github.com/relaypool/relaypool/relay/internal/pgtest"
	"github.com/relaypool/relaypool/relay/internal/store"
	"github.com/relaypool/relaypool/relay/internal/sweep"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	sol         = solana.LAMPORTS_PER_SOL
	keep        = sol / 20
	testTimeout = 2 * time.Minute
	// fee is what each sweep costs: with a zero PriceRule it pays no priority fee.
	fee = 5000
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

// world is a chain whose slots pass quickly, with a database and keys.
type world struct {
	*testing.T
	net   *localnet.Chain
	store *store.Store
	rpc   *rpc.Client
	keys  map[string]*feepayer.Key
}

func newWorld(t *testing.T) *world {
	t.Helper()
	vk := must[[]byte](t)(trapdoor.New("sweep", shieldpool.SignalCount).VerifyingKey())
	w := &world{T: t, keys: map[string]*feepayer.Key{}}
	w.net = must[*localnet.Chain](t)(localnet.New(localnet.Options{VerifyingKey: vk, SlotDuration: 8 * time.Millisecond}))
	server := httptest.NewServer(w.net.Endpoint("honest"))
	t.Cleanup(func() {
		server.Close()
		if err := w.net.Close(); err != nil {
			t.Error(err)
		}
	})
	w.rpc = rpc.New(server.URL)
	db := pgtest.Pool(t)
	if err := store.Migrate(t.Context(), db, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	w.store = must[*store.Store](t)(store.New(db))
	w.net.Start(t.Context())
	return w
}

// key generates a key under a name, and funds it unless lamports is 0.
func (w *world) key(name string, lamports uint64) *feepayer.Key {
	w.Helper()
	k := must[*feepayer.Key](w.T)(feepayer.Generate(rand.Reader))
	w.keys[name] = k
	if lamports > 0 {
		w.fund(k.PublicKey(), lamports)
	}
	return k
}

func (w *world) fund(to solana.PublicKey, lamports uint64) {
	w.Helper()
	if err := w.net.Fund(to, lamports); err != nil {
		w.Fatal(err)
	}
	w.net.Finalize()
}

// balance is the finalized balance of a key, from an endpoint without faults.
func (w *world) balance(k *feepayer.Key) uint64 {
	w.Helper()
	return must[*rpc.GetBalanceResult](w.T)(w.rpc.GetBalance(w.Context(), k.PublicKey(), rpc.CommitmentFinalized)).Value
}

// endpoints makes the sweep's RPC client, with one endpoint for each list of faults.
func (w *world) endpoints(faults ...[]fault.Rule) *chain.Endpoints {
	w.Helper()
	if len(faults) == 0 {
		faults = [][]fault.Rule{nil}
	}
	var all []chain.Endpoint
	for i, rules := range faults {
		name := "faulty-" + string(rune('a'+i))
		endpoint := w.net.Endpoint(name)
		if err := endpoint.SetFaults(rules); err != nil {
			w.Fatal(err)
		}
		server := httptest.NewServer(endpoint)
		w.Cleanup(server.Close)
		all = append(all, chain.Endpoint{Name: name, URL: server.URL, WebSocketURL: chain.NoWebSocket, Roles: []chain.Role{chain.RoleRead, chain.RoleSubmit}})
	}
	e := must[*chain.Endpoints](w.T)(chain.NewEndpoints(chain.EndpointsOptions{
		Endpoints: all, Genesis: localnet.GenesisHash, Now: time.Now, Rand: func() float64 { return 0 },
		Log: slog.New(slog.DiscardHandler), Timeout: time.Second,
	}))
	w.Cleanup(func() {
		_ = e.Flush(context.Background()) // without a deadline it waits for every send
		e.Close()
	})
	return e
}

// completeAccounting is accounting that is always complete.
type completeAccounting struct{}

func (completeAccounting) Complete(context.Context, []solana.PublicKey) (bool, error) {
	return true, nil
}

func (w *world) sweeper(c sweep.Chain) *sweep.Sweeper {
	w.Helper()
	return w.sweeperWithLog(c, w.Output())
}

// sweeperWithLog makes a sweeper that logs to out.
func (w *world) sweeperWithLog(c sweep.Chain, out io.Writer) *sweep.Sweeper {
	w.Helper()
	return must[*sweep.Sweeper](w.T)(sweep.New(sweep.Options{
		Chain: c, Store: w.store.Sweeps(), Accounting: completeAccounting{}, Log: slog.New(slog.NewTextHandler(out, nil)), Now: time.Now,
		Price: txmgr.PriceRule{}, Poll: 10 * time.Millisecond, Rebroadcast: 30 * time.Millisecond,
	}))
}

// triggerWriter is a writer that calls call when a write contains words, and passes all
// writes on.
type triggerWriter struct {
	io.Writer
	words string
	call  func()
}

func (u triggerWriter) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(u.words)) {
		u.call()
	}
	return u.Writer.Write(line)
}

func (w *world) context() context.Context {
	ctx, cancel := context.WithTimeout(w.Context(), testTimeout)
	w.Cleanup(cancel)
	return ctx
}

func (w *world) count(sql string) (n int) {
	w.Helper()
	if err := w.store.Pool.QueryRow(w.Context(), sql).Scan(&n); err != nil {
		w.Fatal(err)
	}
	return n
}

// checkBalances compares finalized balances, by the names of their keys.
func (w *world) checkBalances(balances map[string]uint64) {
	w.Helper()
	for name, want := range balances {
		if got := w.balance(w.keys[name]); got != want {
			w.Errorf("%s has %d lamports, want %d", name, got, want)
		}
	}
	if open := w.count(`SELECT count(*) FROM sweeps WHERE state = 'open'`); open != 0 {
		w.Errorf("%d sweeps are not resolved, want 0", open)
	}
}

func addresses(keys ...*feepayer.Key) (out []solana.PublicKey) {
	for _, k := range keys {
		out = append(out, k.PublicKey())
	}
	return out
}

func signers(keys ...*feepayer.Key) (out []txmgr.Payer) {
	for _, k := range keys {
		out = append(out, k)
	}
	return out
}
