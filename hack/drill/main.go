// Command drill runs relays under every fault that occurs in the field, and then
// compares the answers that clients got, the database and the chain with each
// other: nothing accepted may be lost, and nothing may be sent twice.
//
// Run it by make drill, with SEED=n for another schedule and DURATION for a
// longer or shorter load. The seed decides what happens and when, but not how fast
// the processes answer: it may take several runs of a seed to reproduce a fault.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/relaypool/relaypool/hack/drill/arena"
	"github.com/relaypool/relaypool/hack/drill/report"
	"github.com/relaypool/relaypool/hack/drill/schedule"
	"github.com/relaypool/relaypool/hack/localnet"
)

// errFailed reports that the drill found a fault, which the report describes.
var errFailed = errors.New("the drill found faults: see the report above")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "drill:", err)
		stop()
		os.Exit(1) //nolint:gocritic // all deferred calls have run
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("drill", flag.ContinueOnError)
	seed := flags.Uint64("seed", 1, "`number` that decides schedule and load")
	duration := flags.Duration("duration", 3*time.Minute, "how long load and faults last")
	quiet := flags.Duration("quiet", 5*time.Minute, "how long to wait for every outcome to be final")
	rate := flags.Float64("rate", 8, "new `spends` a second, on average")
	swaps := flags.Float64("swaps", 0.25, "`share` of the spends that are swaps")
	hostility := flags.String("hostility", "seed", "`who` is hostile: two (clients and one of two endpoints), three (clients and one of three endpoints), clients, none, or seed (the seed decides)")
	lies := flags.String("lies", "", "`names` of a hostile endpoint's lies, separated by commas; all when empty")
	root := flags.String("root", ".", "`checkout` that the relay is built from")
	out := flags.String("out", filepath.Join("bin", "drill"), "`folder` for the report and its picture")
	if err := flags.Parse(args); err != nil {
		return err
	}
	endpoints, lying, attacks, err := schedule.ChooseHostility(*hostility, *lies, *seed, arena.LieNames(), arena.AttackNames())
	if err != nil {
		return err
	}
	state := filepath.Join(".run", fmt.Sprintf("drill-%d", *seed))
	if err := errors.Join(os.RemoveAll(state), os.MkdirAll(state, 0o750)); err != nil {
		return fmt.Errorf("make an empty folder for the drill: %w", err)
	}
	absolute, err := filepath.Abs(state)
	if err != nil {
		return fmt.Errorf("find the drill's folder: %w", err)
	}
	outcome, err := arena.Run(ctx, arena.Options{
		Root: *root, State: absolute, Seed: *seed, Duration: *duration, Quiet: *quiet,
		Relays: 3, Endpoints: endpoints, Lies: lying, Attacks: attacks, Payers: 2, Swaps: *swaps, Rate: *rate, InFlight: 400, PollMin: 2 * time.Second, PollMax: 5 * time.Second, PauseMax: 10 * time.Second,
		Slot: localnet.DefaultSlotDuration, FinalizeAfter: 32, Progress: os.Stdout,
	})
	if err != nil {
		return fmt.Errorf("%w; logs are in %s", err, state)
	}
	r := report.Make(*seed, *duration, outcome)
	if err := r.Write(*out); err != nil {
		return err
	}
	r.Print(os.Stdout)
	if !r.Passed() {
		fmt.Printf("\nThe relays' logs are kept in %s.\n", state)
		return errFailed
	}
	return os.RemoveAll(state)
}
