// Package freeport finds TCP ports for processes that have to be told where to
// listen.
package freeport

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
)

// Ports are taken from below those that kernels give to whoever names none, which
// begin at 32768 on Linux and at 49152 elsewhere. One of those would be free now,
// and may be somebody else's by the time that the process listens.
const (
	first = 10_000
	count = 20_000
)

// Find gives n different addresses, 127.0.0.1:port, at which nobody listens. It
// fails with ctx's error, or when the machine lets nobody listen.
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

// Check is an error when somebody listens at an address already.
func Check(ctx context.Context, address string) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return l.Close()
}
