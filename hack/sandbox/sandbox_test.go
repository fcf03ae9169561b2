package sandbox_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/process"
	"github.com/relaypool/relaypool/hack/sandbox"
)

func TestRelayServesAndRestarts(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds the relay and starts everything")
	}
	_ = os.Getenv("RELAYPOOL_SOURCES") // go test discards the cached result when this variable changes
	state := t.TempDir()
	if err := os.Chmod(filepath.Dir(state), 0o711); err != nil { // Postgres may run as another user
		t.Fatal(err)
	}
	s, err := sandbox.New(filepath.Join("..", ".."), state, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return s.BuildRelay(ctx) },
		func(ctx context.Context) error { return s.MakeKeys(ctx, 2, 1) },
		s.StartPostgres,
		func(ctx context.Context) error { return s.FreshDatabase(ctx, "relay", "") },
		func(ctx context.Context) error { return s.FreshDatabase(ctx, "relay", "") }, // as after an earlier run
		func(ctx context.Context) error {
			return s.StartChain(ctx, localnet.Options{}, sandbox.Addresses{}, map[solana.PublicKey]uint64{s.Payers[1].PublicKey(): solana.LAMPORTS_PER_SOL})
		},
	} {
		if err := step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	r, err := s.NewRelay(t.Context(), sandbox.RelayOptions{Name: "relay 1", Endpoints: []sandbox.Endpoint{{Name: "rpc", URL: s.URL}}, Router: s.Router})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.Start(); err != nil {
			t.Fatal(err)
		}
		if err := r.Await(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := r.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Await(t.Context()); err == nil || !strings.Contains(err.Error(), "relay 1 ended by itself (signal: killed)") {
		t.Errorf("error %v, want an error that says how the relay ended", err)
	}
}

func TestAwaitReportsTheLastError(t *testing.T) {
	t.Parallel()
	p, err := process.Start("a sleeper", filepath.Join(t.TempDir(), "log"), "sleep", "60")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() })
	ctx, cancel := context.WithCancel(t.Context())
	checkErr := errors.New("not yet")
	err = sandbox.Await(ctx, p, func(context.Context) error { cancel(); return checkErr })
	if !errors.Is(err, checkErr) || !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the last error of the check and context.Canceled", err)
	}
}

func TestGetReturnsAnErrorUnlessTheStatusIs200(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	if page, err := sandbox.Get(t.Context(), server.URL); err == nil || !strings.Contains(err.Error(), "answers 404") || len(page) == 0 {
		t.Errorf("page %q, error %v, want the page and an error", page, err)
	}
}
