// Package freeport finds TCP ports for processes that have to be told where to
// listen.
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

// Ports are taken from below those that kernels give to whoever names none, which
// begin at 32768 on Linux and at 49152 elsewhere. One of those would be free now,
// and may be somebody else's by the time that the process listens.
const (
	first = 10_000
	count = 20_000
)

// Find gives n different addresses, 127.0.0.1:port, at which nobody listens. As long as
// this process runs, no other call gives the same ones, in whatever process: what is to
// listen there may start a while later. It fails with ctx's error, or when the machine
// lets nobody listen.
func Find(ctx context.Context, n int) (addresses []string, err error) {
	var listen net.ListenConfig
	var held []net.Listener // until all are chosen, so that they differ
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

// given are the ports that this process was given. Those of other processes are locked:
// each is a byte of one file, and the kernel drops a process's locks when it ends.
var given sync.Map

var locks = sync.OnceValues(func() (*os.File, error) {
	name := filepath.Join(os.TempDir(), "relaypool-ports-"+strconv.Itoa(os.Getuid()))
	return os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
})

// take reports whether the port is this caller's from now on.
func take(port int) (bool, error) {
	if _, before := given.LoadOrStore(port, true); before { // our own locks would not keep us out
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

// Check is an error when somebody listens at an address already.
func Check(ctx context.Context, address string) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return l.Close()
}
