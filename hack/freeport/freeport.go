// Package freeport finds TCP ports for processes that need their ports in
// advance.
package freeport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// Ports are below the range that kernels assign to sockets without a chosen port, which
// begins at 32768 on Linux and at 49152 elsewhere. A port of that range may be free now,
// and in use by another process when ours listens.
const (
	first = 10_000
	count = 20_000
)

// Find returns n different addresses, 127.0.0.1:port, at which nothing listens. While this
// process runs, no other call in any process returns the same ones, so the caller's process
// may start to listen later. It fails with ctx's error, or when the machine does not allow
// listening.
func Find(ctx context.Context, n int) (addresses []string, err error) {
	var listen net.ListenConfig
	var held []net.Listener // open until all are chosen, so that they differ
	defer func() {
		for _, l := range held {
			err = errors.Join(err, l.Close())
		}
	}()
	for len(held) < n {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		port := first + rand.IntN(count) //nolint:gosec // G404: guessing it brings nothing
		switch ours, err := take(port); {
		case err != nil:
			return nil, fmt.Errorf("find a free port: %w", err)
		case !ours:
			continue
		}
		l, err := listen.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			continue
		case err != nil:
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		held, addresses = append(held, l), append(addresses, l.Addr().String())
	}
	return addresses, nil
}

// given are the ports returned in this process. Locks mark those of other processes: each
// is a byte of one file, and the kernel releases a process's locks when it ends.
var given sync.Map

var locks = sync.OnceValues(func() (*os.File, error) {
	name := filepath.Join(os.TempDir(), "relaypool-ports-"+strconv.Itoa(os.Getuid()))
	return os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
})

// take reserves a port, and reports whether it was free.
func take(port int) (bool, error) {
	if _, before := given.LoadOrStore(port, true); before { // a process's own locks do not exclude it
		return false, nil
	}
	file, err := locks()
	if err != nil {
		return false, err
	}
	err = syscall.FcntlFlock(file.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: int64(port), Len: 1})
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		return false, nil
	}
	return err == nil, err
}

// Check is an error if a process listens at the address already.
func Check(ctx context.Context, address string) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return l.Close()
}
