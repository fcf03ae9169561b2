// Command localnet runs the local Solana chain alone.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/relaypool/relaypool/hack/localnet"
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

// run runs the chain until ctx is done.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	flags := flag.NewFlagSet("localnet", flag.ContinueOnError)
	flags.SetOutput(stderr)
	listen := flags.String("listen", "127.0.0.1:8899", "`address` of the JSON-RPC server")
	keyFile := flags.String("vk", "", "`file` of the pool's verifying key, as snarkjs writes verification_key.json (required)")
	slot := flags.Duration("slot", localnet.DefaultSlotDuration, "time between slots")
	confirm := flags.Uint64("confirm", localnet.DefaultConfirmAfter, "`blocks` on top of a block that make it confirmed")
	finalize := flags.Uint64("finalize", localnet.DefaultFinalizeAfter, "`blocks` on top of a block that make it finalized")
	initialise := flags.Bool("initialise", false, "initialise the shielded pool at the start")
	verbose := flags.Bool("v", false, "log every transaction")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected arguments: want flags only, got %d arguments more", flags.NArg())
	}
	if *keyFile == "" {
		return errors.New("-vk is missing: name the file with the pool's verifying key")
	}
	key, err := os.ReadFile(*keyFile)
	if err != nil {
		return fmt.Errorf("read verifying key: %w", err)
	}
	logLevel := slog.LevelInfo
	if *verbose {
		logLevel = slog.LevelDebug
	}
	started := time.Now()
	chain, err := localnet.New(localnet.Options{
		VerifyingKey: key, SlotDuration: *slot, ConfirmAfter: *confirm, FinalizeAfter: *finalize, Initialised: *initialise,
		Log: slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: logLevel})),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, chain.Close()) }()
	url, err := chain.Listen(*listen)
	if err != nil {
		return err
	}
	chain.Start(ctx)
	pool := "initialised"
	if !*initialise {
		pool = "not initialised: start with -initialise, or send Initialize"
	}
	if _, err := fmt.Fprintf(stdout, `Local Solana chain ready in %s
  JSON-RPC  %s
  genesis   %s
  slots     every %s; confirmed after %d blocks, finalized after %d
  pool      %s
Everything is in memory and ends with this process. Press Ctrl-C to stop.
`, time.Since(started).Round(time.Millisecond), url, localnet.GenesisHash, *slot, *confirm, *finalize, pool); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	<-ctx.Done()
	return nil
}
