package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/trapdoor"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

func keyFile(t *testing.T) string {
	t.Helper()
	raw, err := trapdoor.New("command", shieldpool.SignalCount).VerifyingKey()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "vk.json")
	if err := os.WriteFile(name, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestTheChainServesUntilItIsStopped(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	vk := keyFile(t)
	reader, writer := io.Pipe()
	done := make(chan error, 1)
	var stderr bytes.Buffer
	go func() {
		done <- run(ctx, []string{
			"-listen", "127.0.0.1:0", "-vk", vk, "-slot", "1ms", "-initialise", "-root-history", "256",
			"-endpoint", "slow=127.0.0.1:0", "-endpoint", "default=127.0.0.1:0", "-admin", "127.0.0.1:0", "-router", "127.0.0.1:0",
		}, writer, &stderr)
		_ = writer.Close()
	}()
	lines := bufio.NewScanner(reader)
	var urls [3]string
	var admin, router string
	for lines.Scan() {
		for i, prefix := range []string{"  JSON-RPC  ", "  endpoint  slow is at ", "  endpoint  default is at "} {
			if url, ok := strings.CutPrefix(lines.Text(), prefix); ok {
				urls[i] = url
			}
		}
		if url, ok := strings.CutPrefix(lines.Text(), "  admin     "); ok {
			admin = url
		}
		if url, ok := strings.CutPrefix(lines.Text(), "  router    "); ok {
			router, _, _ = strings.Cut(url, " ")
		}
		if strings.Contains(lines.Text(), "Ctrl-C") {
			break
		}
	}
	for _, url := range []string{urls[0], urls[2]} {
		if health, err := rpc.New(url).GetHealth(ctx); err != nil || health != "ok" {
			t.Errorf("health at %s is %q with error %v, want ok", url, health, err)
		}
	}
	put, err := http.NewRequestWithContext(ctx, http.MethodPut, admin+"/endpoints/slow/faults", strings.NewReader(`[{"method":"getHealth","status":503}]`))
	if err != nil {
		t.Fatal(err)
	}
	set, err := http.DefaultClient.Do(put)
	if err != nil {
		t.Fatal(err)
	}
	_ = set.Body.Close()
	if _, err := rpc.New(urls[1]).GetHealth(ctx); err == nil || !strings.Contains(err.Error(), "Service Unavailable") {
		t.Errorf("health of the faulty endpoint gives %v, want status 503", err)
	}
	response, err := http.Get(admin + "/stats")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var stats map[string]struct{ Calls, Faults map[string]int }
	if err := json.NewDecoder(response.Body).Decode(&stats); err != nil {
		t.Fatal(err)
	}
	if stats["default"].Calls["getHealth"] != 2 || stats["slow"].Faults["status"] != 1 {
		t.Errorf("the admin port counts %+v, want 2 calls and 1 fault", stats)
	}
	quote, err := http.Get(router + "/quote?inputMint=" + solana.WrappedSol.String() + "&amount=1000000000&outputMint=" + localnet.OutputMint().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = quote.Body.Close() }()
	if quote.StatusCode != http.StatusOK {
		t.Errorf("a quote has status %d, want 200", quote.StatusCode)
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("stopping gives %v, want no error", err)
	}
}

func TestInvalidFlagsAreReported(t *testing.T) {
	t.Parallel()
	vk := keyFile(t)
	tests := map[string]struct {
		args []string
		want string
	}{
		"no key":                         {nil, "-vk is missing"},
		"a missing key file":             {[]string{"-vk", "/does/not/exist"}, "read verifying key"},
		"an argument without a flag":     {[]string{"-vk", vk, "go"}, "want flags only"},
		"an unknown flag":                {[]string{"-moon"}, "flag provided but not defined"},
		"an impossible address":          {[]string{"-vk", vk, "-listen", "nowhere"}, "listen for RPC"},
		"an endpoint without an address": {[]string{"-vk", vk, "-endpoint", "fast"}, "want name=address"},
		"an endpoint that cannot listen": {[]string{"-vk", vk, "-listen", "127.0.0.1:0", "-endpoint", "fast=nowhere"}, "listen for RPC"},
		"a router that cannot listen":    {[]string{"-vk", vk, "-listen", "127.0.0.1:0", "-router", "nowhere"}, "listen for swap router"},
		"an admin port on all addresses": {[]string{"-vk", vk, "-listen", "127.0.0.1:0", "-admin", "0.0.0.0:0"}, "0.0.0.0:0 is no loopback address"},
		"an empty root history":          {[]string{"-vk", vk, "-root-history", "0"}, "-root-history is 0, want 1 root or more"},
		"finalized before confirmed":     {[]string{"-vk", vk, "-confirm", "9", "-finalize", "3"}, "ConfirmAfter 9 and FinalizeAfter 3"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := run(t.Context(), test.args, io.Discard, io.Discard)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	if err := run(t.Context(), []string{"-h"}, io.Discard, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h gives %v, want flag.ErrHelp", err)
	}
}
