package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/internal/pgtest"
	"github.com/relaypool/relaypool/relay/merkle"
)

func TestTheIndexIsVerifiedAndRebuilt(t *testing.T) {
	t.Parallel()
	const leaves = 9000 // two checkpoints
	url := pgtest.URL(t)
	urlFile := filepath.Join(t.TempDir(), "database-url")
	noError(t, os.WriteFile(urlFile, []byte(url), 0o600))
	pool, err := pgxpool.New(t.Context(), url)
	noError(t, err)
	t.Cleanup(pool.Close)
	index := func(name string) (int, string, string) {
		return command(t, "", "index", name, "--database-url-file="+urlFile)
	}
	succeed(t, "", "migrate", "--database-url-file="+urlFile, "--log-level=warn")
	if code, out, _ := index("status"); code != 0 || !strings.Contains(out, "No relay has read leaves yet") {
		t.Errorf("without an index: exit code %d and %q, want 0 and the text that there is none", code, out)
	}
	_, err = pool.Exec(t.Context(), `INSERT INTO commitments SELECT decode(repeat('07', 32), 'hex'), n, decode(lpad(to_hex(n), 64, '0'), 'hex'), n / 2 FROM generate_series(0, $1::int - 1) n`, leaves)
	noError(t, err)
	_, err = pool.Exec(t.Context(), `INSERT INTO commitment_index (pool, leaves, published, slot) SELECT decode(repeat('07', 32), 'hex'), $1::int, $1::int - 2, 4499`, leaves)
	noError(t, err)
	tree := merkle.NewTree()
	for i := range uint64(leaves) {
		var leaf [32]byte
		leaf[30], leaf[31] = byte(i>>8), byte(i)
		e, err := merkle.FromBytes(leaf)
		noError(t, err)
		noError(t, tree.Append(&e))
	}
	root := tree.Root()
	want := fmt.Sprintf("root %x, ", merkle.Bytes(&root))
	steps := []struct {
		what, name, sql, wantOut string
		wantCode                 int
	}{
		{what: "the status", name: "status", wantOut: "9000 leaves stored, 8998 served, read up to slot 4499, generation 0"},
		{what: "no checkpoints", name: "verify", wantOut: want + "0 checkpoints, 0 of them wrong"},
		{what: "a rebuild", name: "rebuild", wantOut: want + "2 checkpoints, 0 of them wrong"},
		{what: "right checkpoints", name: "verify", wantOut: want + "2 checkpoints, 0 of them wrong"},
		{what: "a wrong checkpoint", name: "verify", sql: `UPDATE commitment_checkpoints SET frontier = set_byte(frontier, 31, 77) WHERE last_leaf = 4095`,
			wantOut: "2 checkpoints, 1 of them wrong", wantCode: commandline.ExitFailed},
		{what: "a rebuild of wrong ones", name: "rebuild", wantOut: want + "2 checkpoints, 0 of them wrong"},
		{what: "checkpoints after the rebuild", name: "verify", wantOut: want + "2 checkpoints, 0 of them wrong"},
		{what: "another leaf", name: "verify", sql: `UPDATE commitments SET commitment = decode(lpad('abcd', 64, '0'), 'hex') WHERE leaf_index = 5000`,
			wantOut: "2 checkpoints, 1 of them wrong", wantCode: commandline.ExitFailed},
	}
	for _, step := range steps {
		if step.sql != "" {
			_, err := pool.Exec(t.Context(), step.sql)
			noError(t, err)
		}
		code, out, stderr := index(step.name)
		if code != step.wantCode || !strings.Contains(out, step.wantOut) || step.wantCode != 0 && !strings.Contains(stderr, "relay index rebuild") {
			t.Errorf("%s: exit code %d, output %q and %q; want %d and %q", step.what, code, out, stderr, step.wantCode, step.wantOut)
		}
	}
}
