package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	// TestURLVariable is the name of the environment variable with the URL of a server
	// on which tests may create and drop schemas. Without it, tests start a server.
	TestURLVariable = "RELAYPOOL_TEST_DATABASE_URL"
	// maxTemp is the maximum number of StartTemp's servers that run at the same time.
	maxTemp = 200
)

// StartTemp starts a FastUnsafe server for tests. The returned function stops the server and
// deletes its data. log is Options.Log.
//
// The server's folder is the first of a numbered series that no running process uses. The
// next run's server thus has the same URL, which matters because `go test` uses a cached
// result only for the same environment. The folder's name contains the server's version,
// because results may depend on it. StartTemp deletes the data of a killed run in the folder.
func StartTemp(ctx context.Context, log io.Writer) (*Server, func(context.Context) error, error) {
	if log == nil {
		log = io.Discard
	}
	bin, err := thisMachine(log).find(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("start postgres: %w", err)
	}
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "postgres"), "--version").Output() // postgres (PostgreSQL) 15.18 (Debian …)
	fields := strings.Fields(string(out))
	if err != nil || len(fields) < 3 {
		return nil, nil, fmt.Errorf("start postgres: ask %s for its version: %w: %s", bin, err, out)
	}
	for n := range maxTemp {
		dir := filepath.Join(os.TempDir(), fmt.Sprintf("relaypool-test-postgres-%s-%d", fields[2], n))
		s, err := Start(ctx, Options{DataDir: dir, FastUnsafe: true, Log: log})
		if errors.Is(err, errHeld) || errors.Is(err, errForeign) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		return s, s.remove, nil
	}
	return nil, nil, fmt.Errorf("start postgres: %d servers already run in %s", maxTemp, os.TempDir())
}

// remove stops the server and deletes its data. The folder and its lock file stay, because
// another run may be about to lock it.
func (s *Server) remove(ctx context.Context) error {
	err := s.Stop(ctx)
	for _, path := range []string{s.clusterDir(), s.socketDir(), filepath.Join(s.dir, "postgres.log")} {
		err = errors.Join(err, os.RemoveAll(path))
	}
	return errors.Join(err, s.lock.Unlock())
}
