package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/internal/pgtest"
)

func TestProofAPinIsShownAndForgotten(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	urlFile := filepath.Join(t.TempDir(), "database-url")
	noError(t, os.WriteFile(urlFile, []byte(url), 0o600))
	pool, err := pgxpool.New(t.Context(), url)
	noError(t, err)
	t.Cleanup(pool.Close)
	proofA := func(more ...string) (int, string, string) {
		return command(t, "", append([]string{"proof-a", "--database-url-file=" + urlFile}, more...)...)
	}
	if code, _, stderr := proofA(); code != commandline.ExitFailed || !strings.Contains(stderr, "relay migrate") {
		t.Errorf("without a schema: exit code %d and %q, want what to do", code, stderr)
	}
	succeed(t, "", "migrate", "--database-url-file="+urlFile, "--log-level=warn")
	if code, out, _ := proofA(); code != 0 || !strings.Contains(out, "No encoding is pinned") {
		t.Errorf("without a pin: exit code %d and %q, want 0 and the text that there is none", code, out)
	}
	_, err = pool.Exec(t.Context(), `INSERT INTO proof_signs (key_hash, sign, signature) VALUES ($1, 'negated', $2)`, append([]byte{0xab}, make([]byte, 31)...), make([]byte, 64))
	noError(t, err)
	if code, out, _ := proofA(); code != 0 || !strings.Contains(out, "ab0000") || !strings.Contains(out, "negated") || strings.Contains(out, "Forgot") {
		t.Errorf("with a pin: exit code %d and %q, want 0 and the pin", code, out)
	}
	if code, out, _ := proofA("--forget"); code != 0 || !strings.Contains(out, "Forgot 1.") {
		t.Errorf("with --forget: exit code %d and %q, want 0 and one forgotten pin", code, out)
	}
	if code, out, _ := proofA(); code != 0 || !strings.Contains(out, "No encoding is pinned") {
		t.Errorf("after --forget: exit code %d and %q, want 0 and the text that there is no pin", code, out)
	}
	if code, _, stderr := command(t, "", "proof-a", "--database-url-file="); code != commandline.ExitUsage || !strings.Contains(stderr, "database-url") {
		t.Errorf("without a database: exit code %d and %q, want 2 and the missing flag", code, stderr)
	}
}
