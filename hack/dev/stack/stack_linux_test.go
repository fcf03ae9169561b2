package stack

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/relaypool/relaypool/hack/dev/terminal"
)

func TestAStackServesSaysWhenAPartEndsAndStartsAgain(t *testing.T) {
	t.Parallel()
	key, err := os.ReadFile("../../circuit/verification_key.json")
	if err != nil {
		t.Fatal(err)
	}
	state := t.TempDir()
	if err := os.Chmod(filepath.Dir(state), 0o711); err != nil { // Postgres may run as another user
		t.Fatal(err)
	}
	// What an interrupted start left is no set of keys.
	if err := os.Mkdir(filepath.Join(state, "keys.new"), 0o700); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	start := func() *Stack {
		t.Helper()
		ports, err := Ports{}.Claim(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s, err := Start(t.Context(), Options{Root: "../../..", State: state, Ports: ports, VerifyingKey: key, Print: terminal.New(&out, terminal.Style{})})
		if err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		t.Cleanup(func() { _ = s.Stop(context.WithoutCancel(t.Context())) })
		return s
	}
	first := start()
	if err := first.While(t.Context(), func(ctx context.Context) error { return healthy(ctx, first.OperationsURL) }); err != nil {
		t.Errorf("healthy: %v", err)
	}
	err = first.While(t.Context(), func(ctx context.Context) error {
		if err := syscall.Kill(first.relay.PID(), syscall.SIGKILL); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if err == nil || !strings.Contains(err.Error(), "the relay ended by itself (signal: killed)") || !strings.Contains(err.Error(), "serving") {
		t.Errorf("the relay was killed: error %v, want one that says so, with the end of its log", err)
	}
	if err := first.Stop(t.Context()); err != nil {
		t.Errorf("stop: %v", err)
	}
	if response, err := http.Get(first.ChainURL); err == nil {
		_ = response.Body.Close()
		t.Error("the chain still serves")
	}

	second := start()
	if second.FeePayer != first.FeePayer {
		t.Error("the second start made new keys")
	}
	if err := second.Stop(t.Context()); err != nil {
		t.Errorf("stop the second: %v", err)
	}
}

func TestStartWantsEveryOption(t *testing.T) {
	t.Parallel()
	if _, err := Start(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "every option is required") {
		t.Errorf("error %v", err)
	}
}
