// Command dev is make run and make demo: it starts a private Postgres, a local
// Solana chain and the relay on this machine, and walks through a deposit,
// withdrawals, refusals, a transfer and swaps with real proofs. For development only.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/dev/terminal"
	"github.com/relaypool/relaypool/hack/dev/tour"
	"github.com/relaypool/relaypool/hack/freeport"
	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/wallet"
	"github.com/relaypool/relaypool/relay/contract"
)

type cli struct {
	Run  runCmd  `cmd:"" help:"Start everything, make the tour and keep serving until Ctrl-C."`
	Demo demoCmd `cmd:"" help:"Make the tour once, with its own processes, ports and folder; exits 0 or 1."`
	Tour tourCmd `cmd:"" help:"Make the tour with a relay and a local chain that already run; exits 0 or 1."`
}

type runCmd struct {
	RelayPort      int    `default:"${relayPort}" help:"Port of the relay's interface on 127.0.0.1."`
	OperationsPort int    `default:"${operationsPort}" help:"Port of the relay's metrics and probes."`
	ChainPort      int    `default:"${chainPort}" help:"Port of the local chain's JSON-RPC."`
	RouterPort     int    `default:"${routerPort}" help:"Port of the swap router over the local chain's market."`
	AdminPort      int    `default:"${adminPort}" help:"Port of the local chain's admin interface, which moves its slots."`
	State          string `default:".run" type:"path" help:"Folder of programs, keys, logs and database."`
	Tour           bool   `default:"true" negatable:"" help:"Make the tour before serving."`
}

type demoCmd struct{}

type session struct {
	context.Context
	print *terminal.Printer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// A second signal ends this process at once, and the kernel then ends its children.
	context.AfterFunc(ctx, stop)
	s := &session{ctx, terminal.New(os.Stdout, terminal.StyleOf(os.Stdout))}
	command := kong.Parse(new(cli), kong.Name("dev"), kong.Description("Relaypool on one machine. For development only: keys and coins are worth nothing."),
		kong.Vars{
			"relayPort": strconv.Itoa(contract.APIPort), "operationsPort": strconv.Itoa(contract.OperationsPort), "chainPort": strconv.Itoa(contract.LocalChainPort),
			"routerPort": strconv.Itoa(contract.LocalRouterPort), "adminPort": strconv.Itoa(contract.LocalAdminPort),
		}, kong.Bind(s))
	if err := command.Run(); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("interrupted: %w", err)
		}
		fmt.Fprintln(os.Stderr, "\ndev:", err)
		os.Exit(1)
	}
}

// Run serves until a signal stops the process, which counts as success.
func (c *runCmd) Run(s *session) error {
	at, err := c.localAddresses(s)
	if err != nil {
		return err
	}
	requests := filepath.Join(c.State, "requests")
	// The requests of an earlier run are for a chain that no longer exists.
	if err := os.RemoveAll(requests); err != nil {
		return fmt.Errorf("delete old requests: %w", err)
	}
	return s.with(at, c.State, func(all *stack, prover *wallet.Prover) error {
		if c.Tour {
			if err := s.tour(all, prover, requests); err != nil {
				return err
			}
		}
		if err := prover.Close(); err != nil { // it keeps the keys in memory, and nothing uses it from here on
			return err
		}
		s.serving(all, requests)
		return all.while(s, func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		})
	})
}

// localAddresses returns the addresses of the ports, and requires that they are free. The
// error names the port in use, its purpose and the remedy.
func (c *runCmd) localAddresses(ctx context.Context) (at addresses, err error) {
	for _, want := range []struct {
		what, flag string
		port       int
		at         *string
	}{
		{"relay", "relay-port", c.RelayPort, &at.relay}, {"relay's operations", "operations-port", c.OperationsPort, &at.operations},
		{"local chain", "chain-port", c.ChainPort, &at.Chain}, {"swap router", "router-port", c.RouterPort, &at.Router},
		{"local chain's admin", "admin-port", c.AdminPort, &at.Admin},
	} {
		*want.at = net.JoinHostPort("127.0.0.1", strconv.Itoa(want.port))
		switch err := freeport.Check(ctx, *want.at); {
		case errors.Is(err, syscall.EADDRINUSE):
			return at, fmt.Errorf("port %d of the %s is taken: stop what listens there (an earlier make run?) or choose another port with make run ARGS=--%s=%d",
				want.port, want.what, want.flag, want.port+1)
		case err != nil:
			return at, fmt.Errorf("open port %d of the %s: %w; choose another with --%s", want.port, want.what, err, want.flag)
		}
	}
	return at, nil
}

// Run makes the tour and leaves nothing behind, except the folder after an error.
func (c *demoCmd) Run(s *session) error {
	at, err := freeAddresses(s)
	if err != nil {
		return err
	}
	state, err := os.MkdirTemp("", "relaypool-demo-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	// Postgres may run as another user, who needs to enter; secret files in the folder
	// have modes of their own.
	if err := os.Chmod(state, 0o711); err != nil { //nolint:gosec // see above
		return fmt.Errorf("make a folder: %w", err)
	}
	if err := s.with(at, state, func(all *stack, prover *wallet.Prover) error {
		return s.tour(all, prover, "")
	}); err != nil {
		return fmt.Errorf("%w\nits files are in %s", err, state)
	}
	s.print.Title("All as expected")
	return os.RemoveAll(state)
}

// with starts everything, runs work, and stops everything in an order that loses no data.
func (s *session) with(at addresses, state string, work func(*stack, *wallet.Prover) error) (err error) {
	s.print.Title("Starting. For development only: the proofs' set-up is public and the coins are worth nothing")
	root, err := checkout(s)
	if err != nil {
		return err
	}
	prover, err := s.prover(root)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, prover.Close()) }()
	all, err := start(s, root, state, at, s.print)
	if err != nil {
		return err
	}
	defer func() {
		s.print.Title("Stopping")
		err = errors.Join(err, all.stop(context.WithoutCancel(s)))
	}()
	return work(all, prover)
}

// checkout is the folder of the module around the working folder, according to the go
// command, which also builds from it.
func checkout(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the checkout with the go command, which must be on the PATH: %w", err)
	}
	file := strings.TrimSpace(string(out))
	if filepath.Base(file) != "go.mod" {
		return "", errors.New("find the checkout: the working folder is in no Go module; run this with make, in a clone of relaypool")
	}
	return filepath.Dir(file), nil
}

func (s *session) prover(root string) (*wallet.Prover, error) {
	began := time.Now()
	done := s.print.Busy("preparing the circuit (minutes the first time)")
	defer done()
	prover, err := wallet.StartProver(s, wallet.Options{Progress: s.print, Source: filepath.Join(root, "hack", "circuit")})
	if err != nil {
		return nil, err
	}
	done()
	s.print.Fact("circuit", "%s constraints, verifying key %.16s…, in %s", terminal.Grouped(uint64(prover.Constraints)), prover.KeySHA256, terminal.Seconds(time.Since(began))) //nolint:gosec // a count
	return prover, nil
}

func (s *session) tour(all *stack, prover *wallet.Prover, requests string) error {
	return all.while(s, func(ctx context.Context) error {
		return tour.Run(ctx, all.tour(s, prover, requests))
	})
}

func (s *session) serving(all *stack, requests string) {
	s.print.Title("Serving until Ctrl-C")
	s.print.Fact("relay", "%s", all.relay.URL)
	s.print.Fact("operations", "%s%s", all.relay.Operations, contract.MetricsPath)
	s.print.Fact("local chain", "%s, its admin port on %s", all.URL, all.admin)
	s.print.Fact("swap router", "%s, which sells %s", all.Router, localnet.OutputMint())
	s.print.Fact("logs", "%s and %s", displayPath(all.relay.LogFile), displayPath(all.File(chainLog)))
	s.print.Fact("try", "curl %s%s", all.relay.Operations, contract.HealthPath)
	if _, err := os.Stat(requests); err == nil {
		s.print.Fact("", "curl --json @%s %s%s", filepath.Join(displayPath(requests), "transact.json"), all.relay.URL, contract.TransactPath)
		s.print.Fact("", "curl --json @%s %s%s", filepath.Join(displayPath(requests), "swap.json"), all.relay.URL, contract.TransactSwapPath)
	}
	s.print.Fact("", "curl '%s/quote?inputMint=%s&outputMint=%s&amount=1000000000'", all.Router, solana.WrappedSol, localnet.OutputMint())
}

// displayPath returns the path relative to the working folder, if that is shorter.
func displayPath(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	if relative, err := filepath.Rel(here, path); err == nil && len(relative) < len(path) {
		return relative
	}
	return path
}
