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
	// TestURLVariable names the environment variable with the address of a server
	// on which tests may create and drop schemas. Without it they start their own.
	TestURLVariable = "RELAYPOOL_TEST_DATABASE_URL"
	// maxTemp is how many of StartTemp's servers may run at once.
	maxTemp = 200
)

// StartTemp starts a FastUnsafe server for tests. The returned function stops it and
// deletes its data. Log is Options.Log.
//
// It uses the first folder of a numbered series that no living run uses, so that the
// next run's server has the same address: `go test` repeats a test when its environment
// changed, and the address is in the environment. It deletes what a killed run left
// there. The folder's name has the server's version, which results may depend on.
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
	return nil, nil, fmt.Errorf("start postgres: %d servers run already in %s", maxTemp, os.TempDir())
}

// remove stops the server and deletes its data. Its folder and lock file stay:
// another run may be about to take them.
func (s *Server) remove(ctx context.Context) error {
	err := s.Stop(ctx)
	for _, path := range []string{s.clusterDir(), s.socketDir(), filepath.Join(s.dir, "postgres.log")} {
		err = errors.Join(err, os.RemoveAll(path))
	}
	return errors.Join(err, s.lock.Unlock())
}
