package app

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/testca"
	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/internal/swap"
	"github.com/relaypool/relaypool/relay/internal/telemetry"
)

func TestRouterBehindAPrivateAuthority(t *testing.T) {
	t.Parallel()
	right, wrong := testca.New(t), testca.New(t)
	server := right.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"errorCode":"COULD_NOT_FIND_ANY_ROUTE"}`, http.StatusBadRequest)
	}))
	ask := func(t *testing.T, caFile string) error {
		t.Helper()
		a := &App{log: slog.New(slog.DiscardHandler), metrics: telemetry.NewMetrics(telemetry.Build{}), options: Options{Config: &config.Config{
			Serve: config.Serve{Router: config.Router{Timeout: 20 * time.Second}},
			Swaps: &config.Swaps{Routers: []config.SwapRouter{{Name: config.PreferredRouter, URL: config.NewSecret(server.URL), CAFile: caFile}}},
		}}}
		routers, err := a.openRouters()
		if err != nil {
			return err
		}
		defer routers.Close()
		_, err = routers.Quote(t.Context(), swap.QuoteRequest{InputMint: solana.WrappedSol, OutputMint: solana.PublicKey{1}, User: solana.PublicKey{2}, Amount: 1})
		return err
	}
	var noRoute *swap.NoRoute
	if err := ask(t, right.File(t)); !errors.As(err, &noRoute) {
		t.Errorf("with the right authority the error is %v, want the router's own", err)
	}
	for name, caFile := range map[string]string{"the wrong authority": wrong.File(t), "the system's authorities": ""} {
		var unavailable *swap.RouterUnavailable
		if err := ask(t, caFile); !errors.As(err, &unavailable) || unavailable.Kind != swap.FaultConnection || unavailable.Detail != "TLS certificate not accepted" {
			t.Errorf("with %s the error is %v, want a refused certificate", name, err)
		}
	}
	if err := ask(t, "/c4n4ry"); err == nil || !strings.Contains(err.Error(), "swap router preferred: read ca file: file cannot be read") || strings.Contains(err.Error(), "c4n4ry") {
		t.Errorf("with a missing file the error is %v", err)
	}
}
