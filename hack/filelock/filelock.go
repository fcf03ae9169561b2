// Package filelock locks files for as long as a process lives: the kernel frees a
// lock whose holder dies, so that what is locked has a living owner.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// ErrHeld says that somebody holds the lock: another process, or this one.
var ErrHeld = errors.New("somebody holds the lock")

const pollInterval = 50 * time.Millisecond

// Try takes the lock of a file, which it makes when it is missing, or fails with
// ErrHeld.
func Try(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return file, nil
	}
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		err = ErrHeld
	}
	return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
}

// Wait takes the lock of a file when nobody else holds it any more.
func Wait(ctx context.Context, path string) (*os.File, error) {
	for {
		file, err := Try(path)
		if !errors.Is(err, ErrHeld) {
			return file, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the lock of %s: %w", path, ctx.Err())
		case <-time.After(pollInterval):
		}
	}
}

// Release frees a lock. Closing the file alone is not enough: a child that another
// goroutine is just starting holds a copy of it until its exec.
func Release(file *os.File) error {
	if err := errors.Join(syscall.Flock(int(file.Fd()), syscall.LOCK_UN), file.Close()); err != nil {
		return fmt.Errorf("release the lock of %s: %w", file.Name(), err)
	}
	return nil
}
