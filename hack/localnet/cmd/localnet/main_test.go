package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go/rpc"

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
		done <- run(ctx, []string{"-listen", "127.0.0.1:0", "-vk", vk, "-slot", "1ms", "-initialise"}, writer, &stderr)
		_ = writer.Close()
	}()
	lines := bufio.NewScanner(reader)
	var url string
	for lines.Scan() {
		if at, ok := strings.CutPrefix(lines.Text(), "  JSON-RPC  "); ok {
			url = at
		}
		if strings.Contains(lines.Text(), "Ctrl-C") {
			break
		}
	}
	if health, err := rpc.New(url).GetHealth(ctx); err != nil || health != "ok" {
		t.Errorf("health at %s is %q with error %v, want ok", url, health, err)
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("stopping gives %v, want no error", err)
	}
}

func TestBadFlagsAreExplained(t *testing.T) {
	t.Parallel()
	vk := keyFile(t)
	tests := map[string]struct {
		args []string
		want string
	}{
		"no key":                  {nil, "-vk is missing"},
		"a key that is not there": {[]string{"-vk", "/does/not/exist"}, "read verifying key"},
		"words":                   {[]string{"-vk", vk, "go"}, "want flags only"},
		"an unknown flag":         {[]string{"-moon"}, "flag provided but not defined"},
		"an impossible address":   {[]string{"-vk", vk, "-listen", "nowhere"}, "listen for RPC"},
		"impossible levels":       {[]string{"-vk", vk, "-confirm", "9", "-finalize", "3"}, "ConfirmAfter 9 and FinalizeAfter 3"},
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
		t.Errorf("-h gives %v, want the help", err)
	}
}
