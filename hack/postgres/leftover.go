package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/relaypool/relaypool/hack/filelock"
)

// lockDir takes the folder for the life of this process: a held lock means a living
// run, and a server on a folder whose lock we got is a leftover.
func lockDir(dir string) (*os.File, error) {
	lock, err := filelock.Try(filepath.Join(dir, "lock"))
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("another running process uses the PostgreSQL data in %s: stop that one first, or name another folder: %w", dir, err)
	}
	return lock, err
}

// stopLeftover stops a server that a killed run left on the cluster. A stale
// postmaster.pid, whose process is gone or is another program, is
// PostgreSQL's own business: it checks and replaces the file.
func stopLeftover(ctx context.Context, clusterDir string, log io.Writer) error {
	pid, err := postmasterPid(clusterDir)
	if err != nil || pid == 0 {
		return err
	}
	if !serves(pid, clusterDir) {
		return nil
	}
	fmt.Fprintf(log, "Stopping the PostgreSQL server (process %d) that an earlier run left on %s\n", pid, clusterDir)
	watch, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	exited := make(chan struct{})
	go func() {
		for serves(pid, clusterDir) {
			select {
			case <-watch.Done():
				return
			case <-time.After(pollInterval):
			}
		}
		close(exited)
	}()
	send := func(sig syscall.Signal) error { return syscall.Kill(pid, sig) }
	if err := shutdown(ctx, send, exited); err != nil {
		fmt.Fprintln(log, err)
	}
	if serves(pid, clusterDir) {
		return fmt.Errorf("the PostgreSQL server (process %d) of an earlier run on %s does not end: stop it by hand", pid, clusterDir)
	}
	return nil
}

// postmasterPid reads the id of the server that last opened the cluster, the
// first line of its lock file; 0 when it was shut down.
func postmasterPid(clusterDir string) (int, error) {
	path := filepath.Join(clusterDir, "postmaster.pid")
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("look for an earlier server: %w", err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil || pid <= 0 {
		return 0, fmt.Errorf("look for an earlier server: the first line of %s is not a process id: remove the file if no server runs on that folder", path)
	}
	return pid, nil
}
