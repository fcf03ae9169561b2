package stack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"github.com/relaypool/relaypool/hack/freeport"
)

const loopback = "127.0.0.1"

// Ports are the TCP ports on 127.0.0.1 of what serves. 0 lets Claim choose.
type Ports struct {
	Relay, Operations, Chain int
	// Router is the swap router's, Admin the local chain's admin port.
	Router, Admin int
}

// Claim checks that the ports are free and fills in free ones for zeros. Its
// error names the port, what it is for and what to do. A port is not held: the
// program that it is for opens it.
func (p Ports) Claim(ctx context.Context) (Ports, error) {
	var listen net.ListenConfig
	var held []net.Listener // until all are chosen, so that they differ
	var open []*int
	defer func() {
		for _, l := range held {
			_ = l.Close() // nobody has connected
		}
	}()
	for _, want := range []struct {
		what, flag string
		port       *int
	}{
		{"relay", "relay-port", &p.Relay}, {"relay's operations", "operations-port", &p.Operations}, {"local chain", "chain-port", &p.Chain},
		{"swap router", "router-port", &p.Router}, {"local chain's admin", "admin-port", &p.Admin},
	} {
		if *want.port == 0 {
			open = append(open, want.port)
			continue
		}
		l, err := listen.Listen(ctx, "tcp", address(*want.port))
		if errors.Is(err, syscall.EADDRINUSE) {
			return p, fmt.Errorf("port %d of the %s is taken: stop what listens there (an earlier make run?) or choose another port with make run ARGS=--%s=%d",
				*want.port, want.what, want.flag, *want.port+1)
		}
		if err != nil {
			return p, fmt.Errorf("open port %d of the %s: %w; choose another with --%s", *want.port, want.what, err, want.flag)
		}
		held = append(held, l)
	}
	addresses, err := freeport.Find(ctx, len(open))
	if err != nil {
		return p, err
	}
	for i, a := range addresses {
		parsed, err := netip.ParseAddrPort(a)
		if err != nil {
			return p, fmt.Errorf("read a free port: %w", err)
		}
		*open[i] = int(parsed.Port())
	}
	return p, nil
}

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }
