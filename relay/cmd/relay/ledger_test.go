package main

import (
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/internal/app"
	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/internal/feepayer"
	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/internal/pgtest"
	"github.com/relaypool/relaypool/relay/internal/store"
)

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestLedger(t *testing.T) {
	t.Parallel()
	vk, err := os.ReadFile(verifyingKey)
	noError(t, err)
	net, err := localnet.New(localnet.Options{VerifyingKey: vk})
	noError(t, err)
	t.Cleanup(func() { noError(t, net.Close()) })
	rpc, err := net.Listen("127.0.0.1:0")
	noError(t, err)
	url := pgtest.URL(t)
	urlFile := file(t, url)
	succeed(t, "", "migrate", "--database-url-file="+urlFile, "--log-level=warn")
	command := func(more ...string) (code int, out, stderr string) {
		return command(t, "", append([]string{"ledger", "--database-url-file=" + urlFile, "--log-level=warn"}, more...)...)
	}

	if code, _, stderr := command("--rpc-url=" + rpc); code != 0 || !strings.Contains(stderr, "the ledger is empty") {
		t.Errorf("an empty ledger: exit code %d and %q, want 0 and the text that it is empty", code, stderr)
	}

	key, err := feepayer.Generate(rand.Reader)
	noError(t, err)
	fund := func(lamports uint64) {
		noError(t, net.Fund(key.PublicKey(), lamports))
		net.Finalize()
	}
	fund(5_000_000_000)
	endpoints, err := app.Endpoints([]config.Endpoint{{Name: "rpc", URL: config.NewSecret(rpc)}}, chain.EndpointsOptions{Log: slog.New(slog.DiscardHandler)})
	noError(t, err)
	t.Cleanup(endpoints.Close)
	pool, err := store.Open(t.Context(), url, store.TLSFiles{}, 2)
	noError(t, err)
	t.Cleanup(pool.Close)
	s, err := store.New(pool)
	noError(t, err)
	reconciler, err := ledger.NewReconciler(ledger.ReconcilerOptions{
		Payers: []solana.PublicKey{key.PublicKey()}, Store: s.Ledger(), Chain: endpoints, Observer: noObserver{}, Log: slog.New(slog.DiscardHandler), Now: time.Now,
	})
	noError(t, err)
	noError(t, reconciler.Reconcile(t.Context()))

	fund(2_000_000_000) // only the command reads this payment
	code, out, stderr := command("--rpc-url="+rpc, "--json", "--from=2020-01-01")
	if code != 0 {
		t.Fatalf("exit code %d, want 0: %s", code, stderr)
	}
	var got ledger.Statement
	noError(t, json.Unmarshal([]byte(out), &got))
	if len(got.Payers) != 1 || got.Payers[0].Received != 7_000_000_000 || got.Payers[0].Chain == nil || *got.Payers[0].Chain != 7_000_000_000 || len(got.Days) == 0 {
		t.Errorf("received %s", out)
	}
	if code, out, _ := command(); code != 0 || !strings.Contains(out, key.PublicKey().String()) {
		t.Errorf("without an endpoint: exit code %d and %s, want 0 and the key", code, out)
	}
	if code, out, _ := command("--json", "--to=2020-01-01"); code != 0 || strings.Contains(out, `"day":`) {
		t.Errorf("days before the first: exit code %d and %s, want 0 and no day", code, out)
	}

	_, err = pool.Exec(t.Context(), "UPDATE ledger_cursors SET after = after - 5")
	noError(t, err)
	for name, more := range map[string][]string{"within itself": nil, "with the chain": {"--rpc-url=" + rpc}} {
		if code, _, stderr := command(more...); code != commandline.ExitFailed || !strings.Contains(stderr, "lamports are not accounted for") {
			t.Errorf("a ledger that disagrees %s: exit code %d and %q, want 1 and the discrepancy", name, code, stderr)
		}
	}
	if code, _, stderr := command("--rpc-url=http://127.0.0.1:1"); code != commandline.ExitFailed || !strings.Contains(stderr, "bring the ledger up to the chain") {
		t.Errorf("a chain that is down: exit code %d and %q, want 1 and the failed step", code, stderr)
	}
}
