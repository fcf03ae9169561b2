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
)

// errLocked begins lockDir's error about a folder that is taken.
var errLocked = errors.New("another running process uses")

// lockDir takes the folder for the life of this process. The kernel frees the
// lock when its holder dies, so a held lock means a living run, and a server
// on a folder whose lock we got is a leftover.
func lockDir(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the state folder: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return file, nil
	}
	_ = file.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("%w the PostgreSQL data in %s: stop that one first, or name another folder", errLocked, dir)
	}
	return nil, fmt.Errorf("lock the state folder: %w", err)
}

// unlock frees the folder. Closing the file alone is not enough: a child that
// another goroutine is just starting holds a copy of it until its exec.
func unlock(file *os.File) error {
	if err := errors.Join(syscall.Flock(int(file.Fd()), syscall.LOCK_UN), file.Close()); err != nil {
		return fmt.Errorf("unlock the state folder: %w", err)
	}
	return nil
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
