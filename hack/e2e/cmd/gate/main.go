// Command gate works for the end-to-end suite inside the cluster: "gate serve" connects to
// the addresses that the suite names, "gate kill ID" ends a container's processes with
// SIGKILL from the node's process namespace.
package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/relaypool/relaypool/hack/e2e/gate"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gate:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 0 || len(args) == 1 && args[0] == "serve":
		stop := make(chan struct{})
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
		go func() { <-signals; close(stop) }()
		return gate.Serve(net.JoinHostPort("", strconv.Itoa(gate.Port)), stop)
	case len(args) == 2 && args[0] == "kill":
		killed, err := gate.KillContainer("/proc", args[1])
		fmt.Println("killed", killed)
		return err
	default:
		return errors.New("expected serve, or kill with a container's id")
	}
}
