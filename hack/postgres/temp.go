package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/relaypool/relaypool/hack/filelock"
)

// TestURLVariable names the environment variable with the address of a server
// on which tests may create and drop schemas. Without it they start their own.
const TestURLVariable = "RELAYPOOL_TEST_DATABASE_URL"

// tempPrefix begins the names of the folders that StartTemp makes.
const tempPrefix = "relaypool-test-postgres-"

// StartTemp starts a FastUnsafe server on a new folder for tests. The
// returned function stops it and deletes the folder. Folders that killed runs
// left behind are deleted too. Log is Options.Log.
func StartTemp(ctx context.Context, log io.Writer) (*Server, func(context.Context) error, error) {
	removeAbandoned(os.TempDir(), time.Now().Add(-time.Minute))
	dir, err := os.MkdirTemp("", tempPrefix)
	if err != nil {
		return nil, nil, fmt.Errorf("start postgres: %w", err)
	}
	s, err := Start(ctx, Options{DataDir: dir, FastUnsafe: true, Log: log})
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	remove := func(ctx context.Context) error {
		return errors.Join(s.Stop(ctx), os.RemoveAll(dir))
	}
	return s, remove, nil
}

// removeAbandoned deletes StartTemp's folders that no living process holds. A
// test that is killed, by Ctrl-C or its timeout, can not delete its own, and
// each is 40 MB. Those younger than the given time are left alone: their
// process may not have locked them yet. It is housekeeping, so whatever it can
// not delete, for example another user's, stays without an error.
func removeAbandoned(parent string, before time.Time) {
	dirs, _ := filepath.Glob(filepath.Join(parent, tempPrefix+"*"))
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || info.ModTime().After(before) {
			continue
		}
		lock, err := lockDir(dir)
		if err != nil {
			continue
		}
		if pid, err := postmasterPid(filepath.Join(dir, "data")); err == nil && (pid == 0 || !serves(pid, filepath.Join(dir, "data"))) {
			_ = os.RemoveAll(dir)
		}
		_ = filelock.Release(lock)
	}
}
