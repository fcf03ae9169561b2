// Command localnet runs a local Solana chain as a process.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/market"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "localnet:", err)
		os.Exit(1)
	}
}

type settings struct {
	options   localnet.Options
	listen    string
	admin     string
	router    string
	endpoints []address
}

type address struct{ name, addr string }

func parse(args []string, stderr io.Writer) (*settings, error) {
	s := &settings{}
	o := &s.options
	flags := flag.NewFlagSet("localnet", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&s.listen, "listen", net.JoinHostPort("127.0.0.1", strconv.Itoa(contract.LocalChainPort)),
		"`address` of the default endpoint, which serves JSON-RPC and WebSocket")
	keyFile := flags.String("vk", "", "`file` of the pool's verifying key, as snarkjs writes verification_key.json (required)")
	flags.DurationVar(&o.SlotDuration, "slot", localnet.DefaultSlotDuration, "time between slots")
	flags.Uint64Var(&o.ConfirmAfter, "confirm", localnet.DefaultConfirmAfter, "`blocks` on top of a block that make it confirmed")
	flags.Uint64Var(&o.FinalizeAfter, "finalize", localnet.DefaultFinalizeAfter, "`blocks` on top of a block that make it finalized")
	flags.BoolVar(&o.Initialised, "initialise", false, "initialise the shielded pool at the start")
	flags.Uint64Var(&o.SeedLeaves, "seed-leaves", 0, "number of `leaves` that the initialised pool begins with, as if a history had appended them; a million take some seconds")
	flags.IntVar(&o.RootHistory, "root-history", shieldpool.Development().RootHistory,
		"number of `roots` in the pool's root history; a relay needs a profile with the same number")
	flags.Func("endpoint", "further endpoint with its own faults and statistics, as `name=address`; may be repeated. The name of an existing endpoint\n"+
		"adds an address to it, such as default=127.0.0.1:8900 for clients that expect WebSocket at the next port", s.addEndpoint)
	flags.StringVar(&s.admin, "admin", "", "loopback `address` of the admin port (README.md), which is closed by default")
	flags.StringVar(&s.router, "router", "", "`address` of the swap router, which sells development dollars for SOL and speaks Jupiter's swap API v1;\n"+
		"closed by default")
	flags.Uint64Var(&o.Seed, "seed", 0, "`number` that seeds the random faults; the same seed gives the same faults")
	verbose := flags.Bool("v", false, "log every transaction")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("want flags only, got %d other arguments", flags.NArg())
	}
	if *keyFile == "" {
		return nil, errors.New("-vk is missing: name the file with the pool's verifying key")
	}
	if o.RootHistory < 1 {
		return nil, fmt.Errorf("-root-history is %d, want 1 root or more", o.RootHistory)
	}
	logLevel := slog.LevelInfo
	if *verbose {
		logLevel = slog.LevelDebug
	}
	o.Log = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: logLevel}))
	var err error
	if o.VerifyingKey, err = os.ReadFile(*keyFile); err != nil {
		return nil, fmt.Errorf("read verifying key: %w", err)
	}
	return s, nil
}

func (s *settings) addEndpoint(value string) error {
	name, addr, ok := strings.Cut(value, "=")
	if !ok || name == "" || addr == "" {
		return errors.New("want name=address, such as fast=127.0.0.1:8901")
	}
	s.endpoints = append(s.endpoints, address{name, addr})
	return nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	s, err := parse(args, stderr)
	if err != nil {
		return err
	}
	started := time.Now()
	chain, err := localnet.New(s.options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, chain.Close()) }()
	addresses, err := s.open(chain)
	if err != nil {
		return err
	}
	chain.Start(ctx)
	pool := fmt.Sprintf("initialised, with a root history of %d roots", s.options.RootHistory)
	if !s.options.Initialised {
		pool = "not initialised: start with -initialise, or send Initialize"
	}
	if _, err := fmt.Fprintf(stdout, `Local Solana chain ready in %s
%s  genesis   %s
  slots     every %s; confirmed after %d blocks, finalized after %d
  pool      %s
Everything is in memory and ends with this process. Press Ctrl-C to stop.
`, time.Since(started).Round(time.Millisecond), addresses, localnet.GenesisHash,
		s.options.SlotDuration, s.options.ConfirmAfter, s.options.FinalizeAfter, pool); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	<-ctx.Done()
	return nil
}

// open opens the ports and returns the text that lists their addresses.
func (s *settings) open(chain *localnet.Chain) (where string, err error) {
	url, err := chain.Listen(s.listen)
	if err != nil {
		return "", err
	}
	where = fmt.Sprintf("  JSON-RPC  %s\n", url)
	for _, e := range s.endpoints {
		if url, err = chain.ListenEndpoint(e.name, e.addr); err != nil {
			return "", err
		}
		where += fmt.Sprintf("  endpoint  %s is at %s\n", e.name, url)
	}
	if s.router != "" {
		if url, err = chain.ListenRouter(s.router); err != nil {
			return "", err
		}
		where += fmt.Sprintf("  router    %s sells mint %s by program %s\n", url, localnet.OutputMint(), market.ProgramID)
	}
	if s.admin != "" {
		if url, err = chain.ListenAdmin(s.admin); err != nil {
			return "", err
		}
		where += fmt.Sprintf("  admin     %s\n", url)
	}
	return where, nil
}
