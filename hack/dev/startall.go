package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/dev/terminal"
	"github.com/relaypool/relaypool/hack/dev/tour"
	"github.com/relaypool/relaypool/hack/freeport"
	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/sandbox"
	"github.com/relaypool/relaypool/hack/wallet"
	"github.com/relaypool/relaypool/relay/contract"
)

const (
	// feePayerLamports pay for about 5 000 transactions.
	feePayerLamports = 10_000_000_000
	chainLog         = "localnet.log"
)

type addresses struct {
	sandbox.Addresses
	relay, operations string
}

func freeAddresses(ctx context.Context) (addresses, error) {
	free, err := freeport.Find(ctx, 5)
	if err != nil {
		return addresses{}, err
	}
	return addresses{sandbox.Addresses{Chain: free[0], Router: free[1], Admin: free[2]}, free[3], free[4]}, nil
}

type stack struct {
	*sandbox.Sandbox
	relay    *sandbox.Relay
	admin    string
	chainLog *os.File
	print    *terminal.Printer
}

// start builds and starts everything and returns when the relay reports itself healthy.
// After a failure it stops everything that it has started.
func start(ctx context.Context, root, state string, at addresses, printer *terminal.Printer) (_ *stack, err error) {
	box, err := sandbox.New(root, state, printer)
	if err != nil {
		return nil, err
	}
	s := &stack{Sandbox: box, admin: "http://" + at.Admin, print: printer}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop(context.WithoutCancel(ctx)))
		}
	}()
	for _, step := range []struct {
		doing string
		do    func() error
		fact  string
		value func() string
	}{
		// Postgres goes first: its lock prevents a second run in the same folder.
		{"starting Postgres", func() error {
			if err := s.StartPostgres(ctx); err != nil {
				return err
			}
			return s.FreshDatabase(ctx, "relay", "")
		}, "Postgres", func() string { return "on a private socket" }},
		// The relay is built from the checkout, so that the user runs the present code.
		{"building the relay (minutes the first time)", func() error {
			if err := s.BuildRelay(ctx); err != nil {
				return err
			}
			return s.MakeKeys(ctx, 1, 1)
		}, "programs", func() string { return "relay" }},
		{"starting the local chain", func() error { return s.startChain(ctx, at) }, "local chain", func() string {
			return fmt.Sprintf("%s, with a market and its router on %s", s.URL, s.Router)
		}},
		{"starting the relay", func() error { return s.startRelay(ctx, at) }, "relay", func() string {
			return fmt.Sprintf("%s, operations on %s", s.relay.URL, s.relay.Operations)
		}},
	} {
		began, done := time.Now(), printer.Busy("%s", step.doing)
		err := step.do()
		done()
		if err != nil {
			return nil, err
		}
		printer.Fact(step.fact, "%s, in %s", step.value(), terminal.Seconds(time.Since(began)))
	}
	printer.Fact("fee payer", "%s, funded with %s", s.Payers[0].PublicKey(), terminal.Lamports(feePayerLamports))
	return s, nil
}

func (s *stack) startChain(ctx context.Context, at addresses) (err error) {
	if s.chainLog, err = os.Create(s.File(chainLog)); err != nil {
		return fmt.Errorf("open the chain's log: %w", err)
	}
	return s.StartChain(ctx, localnet.Options{Log: slog.New(slog.NewTextHandler(s.chainLog, nil))}, at.Addresses,
		map[solana.PublicKey]uint64{s.Payers[0].PublicKey(): feePayerLamports})
}

func (s *stack) startRelay(ctx context.Context, at addresses) (err error) {
	s.relay, err = s.NewRelay(ctx, sandbox.RelayOptions{
		Name: "relay", Listen: at.relay, Operations: at.operations, Endpoints: []sandbox.Endpoint{{Name: "rpc", URL: s.URL}}, Router: s.Router + "/v2",
	})
	if err != nil {
		return err
	}
	if err := s.relay.Start(); err != nil {
		return err
	}
	if err := s.relay.Await(ctx); err != nil {
		return err
	}
	return sandbox.Await(ctx, s.relay.Process, func(ctx context.Context) error { return healthy(ctx, s.relay.Operations) })
}

// healthy returns an error unless GET /health reports that the relay is healthy.
func healthy(ctx context.Context, operations string) error {
	page, err := sandbox.Get(ctx, operations+contract.HealthPath)
	var report struct{ Status string }
	if err == nil && (json.Unmarshal(page, &report) != nil || report.Status != "ok") {
		err = fmt.Errorf("the relay is not healthy: %s", page)
	}
	return err
}

func (s *stack) tour(session *session, prover *wallet.Prover, requests string) tour.Options {
	return tour.Options{
		RelayURL: s.relay.URL, OperationsURL: s.relay.Operations, ChainURL: s.URL, RouterURL: s.Router, AdminURL: s.admin,
		OutputMint: localnet.OutputMint(), HTTP: http.DefaultClient, FeePayer: s.Payers[0].PublicKey(),
		Prover: prover, Print: session.print, Requests: requests, Random: rand.Reader, Now: time.Now,
	}
}

// while runs work, and cancels it if the relay exits. The error is then the relay's exit,
// with the end of its log.
func (s *stack) while(ctx context.Context, work func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-ctx.Done():
		case <-s.relay.Exited():
			cancel(s.relay.Ended())
		}
	}()
	err := work(ctx)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// stop stops the relay first, because its pending submissions need the chain and the
// database.
func (s *stack) stop(ctx context.Context) (err error) {
	defer s.print.Busy("stopping relay, local chain and Postgres")()
	if s.relay != nil {
		err = s.relay.Stop(contract.TerminationGrace)
	}
	err = errors.Join(err, s.Close(ctx))
	if s.chainLog != nil {
		err = errors.Join(err, s.chainLog.Close())
	}
	return err
}
