package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/relaypool/relaypool/hack/postgres"
)

func TestRunStartsAServerAndRemovesIt(t *testing.T) {
	t.Setenv(postgres.TestURLVariable, "")
	out := filepath.Join(t.TempDir(), "out")
	code, err := run([]string{"sh", "-c", `printf %s "$` + postgres.TestURLVariable + `" > "$1"; exit 3`, "sh", out})
	if err != nil || code != 3 {
		t.Fatalf("got code %d, error %v; want the command's code 3", code, err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	_, host, ok := strings.Cut(string(text), "host=")
	if !ok || !strings.HasPrefix(string(text), "postgres://") {
		t.Fatalf("the command had the URL %q, want postgres:// with a host", text)
	}
	host, _, _ = strings.Cut(strings.ReplaceAll(host, "%2F", "/"), "&")
	if _, err := os.Stat(host); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("stat the server's folder %s: error %v, want that it does not exist", host, err)
	}
}

func TestRunUsesAGivenServer(t *testing.T) {
	t.Setenv(postgres.TestURLVariable, "postgres://given")
	code, err := run([]string{"sh", "-c", `test "$` + postgres.TestURLVariable + `" = postgres://given`})
	if err != nil || code != 0 {
		t.Errorf("got code %d, error %v; want 0, because the command has the given URL", code, err)
	}
}

func TestRunReportsHowTheCommandEnded(t *testing.T) {
	t.Setenv(postgres.TestURLVariable, "postgres://given")
	if code, err := run([]string{"sh", "-c", "kill -KILL $$"}); err != nil || code != 128+9 {
		t.Errorf("a killed command: got code %d, error %v; want 137", code, err)
	}
	if code, err := run([]string{"/nonexistent/command"}); err == nil || code != 1 {
		t.Errorf("a missing command: got code %d, error %v; want 1 and an error", code, err)
	}
}

// TestRunForwardsSignals sends SIGTERM to this process. The command and its children must get the
// signal, so that none of them runs longer than this process.
func TestRunForwardsSignals(t *testing.T) {
	t.Setenv(postgres.TestURLVariable, "postgres://given")
	ready := filepath.Join(t.TempDir(), "ready")
	go func() {
		deadline := time.Now().Add(30 * time.Second)
		for time.Now().Before(deadline) {
			if _, err := os.Stat(ready); err == nil {
				_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
				return
			}
			<-time.After(10 * time.Millisecond)
		}
	}()
	// If sleep did not get the signal, the shell would wait a minute for the end of sleep.
	code, err := run([]string{"sh", "-c", `sleep 60 & trap 'wait; exit 7' TERM; : > "$1"; wait`, "sh", ready})
	if err != nil || code != 7 {
		t.Errorf("got code %d, error %v; want 7 from the command's signal handler", code, err)
	}
}
