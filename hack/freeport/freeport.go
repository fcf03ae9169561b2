// Package freeport finds free TCP ports for processes whose ports must be known before they
// start.
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

// Ports are below the ephemeral range, from which the kernel chooses ports. That range begins
// at 32768 on Linux and at 49152 elsewhere. The kernel could give a free port of that range to
// another process before the caller listens.
const (
	firstPort = 10_000 // the lowest port
	portCount = 20_000 // the number of ports
)

// Find returns n different addresses, 127.0.0.1:port, at which no process listens. While this
// process runs, no other call of Find in any process returns the same addresses, so that the
// caller may listen later. The error is that of ctx, or of a failed attempt to listen.
func Find(ctx context.Context, n int) (addresses []string, err error) {
	defer excludeForks()()
	var listen net.ListenConfig
	var listeners []net.Listener // open until all ports are chosen, so that they differ
	defer func() {
		for _, l := range listeners {
			err = errors.Join(err, l.Close())
		}
	}()
	for len(listeners) < n {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		port := firstPort + rand.IntN(portCount) //nolint:gosec // G404: a port is not a secret
		switch reserved, err := reserve(port); {
		case err != nil:
			return nil, fmt.Errorf("find a free port: %w", err)
		case !reserved:
			continue
		}
		l, err := listen.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			continue
		case err != nil:
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		listeners, addresses = append(listeners, l), append(addresses, l.Addr().String())
	}
	return addresses, nil
}

// tried are the ports that this process has tried to reserve.
var tried sync.Map

// locks opens the file with the locks of all processes. The lock of byte n reserves port n.
// The kernel releases a process's locks when the process ends.
var locks = sync.OnceValues(func() (*os.File, error) {
	name := filepath.Join(os.TempDir(), "relaypool-ports-"+strconv.Itoa(os.Getuid()))
	return os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
})

// reserve reserves a port for this process. It reports whether the port was free.
func reserve(port int) (bool, error) {
	if _, before := tried.LoadOrStore(port, true); before { // the file's lock does not exclude the process that holds it
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

// Check returns an error if a process already listens at the address.
func Check(ctx context.Context, address string) error {
	defer excludeForks()()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return l.Close()
}

// excludeForks lets this process start no other one until allow is called. A process that is being started has
// its parent's listeners, closed ones too, until it runs its own program: the port would still be taken.
func excludeForks() (allow func()) {
	syscall.ForkLock.RLock()
	return syscall.ForkLock.RUnlock
}
