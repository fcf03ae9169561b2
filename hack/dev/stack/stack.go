// Package stack runs everything that a relay needs on one machine: a private
// Postgres, the local chain with its pool, and the relay itself, each as the
// real process that it is elsewhere.
package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/hack/dev/terminal"
	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/market"
	"github.com/relaypool/relaypool/hack/postgres"
	"github.com/relaypool/relaypool/hack/process"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	database = "relay"
	// feePayerLamports pay for about 5 000 transactions.
	feePayerLamports = 10_000_000_000

	chainGrace = 5 * time.Second
	// stopPostgresWithin is what a fast shutdown gets before it is forced.
	stopPostgresWithin = 20 * time.Second
)

// Options say what to run, and where. All are required.
type Options struct {
	// Root is the checkout that the programs are built from.
	Root string
	// State is the folder for programs, keys, logs and the database. It is made
	// when missing.
	State string
	// Ports come from Claim.
	Ports Ports
	// VerifyingKey is the pool's, as snarkjs' verification_key.json.
	VerifyingKey []byte
	// Print shows progress.
	Print *terminal.Printer
}

// Stack is a running relay with what it stands on.
type Stack struct {
	// RelayURL, OperationsURL, ChainURL, RouterURL and AdminURL, which is the
	// chain's, have no slash at the end.
	RelayURL, OperationsURL, ChainURL, RouterURL, AdminURL string
	// OutputMint is what the chain's market sells for SOL.
	OutputMint solana.PublicKey
	// FeePayer pays for the relay's transactions.
	FeePayer solana.PublicKey
	// RelayLog and ChainLog are the processes' logs.
	RelayLog, ChainLog string

	o            Options
	postgres     *postgres.Server
	chain, relay *process.Process
}

// Start builds and starts everything and returns when the relay reports itself
// healthy. When something fails, what had been started is stopped. The context
// bounds the start alone; Stop ends the stack.
func Start(ctx context.Context, o Options) (_ *Stack, err error) {
	if o.Root == "" || o.State == "" || o.Ports.Relay == 0 || len(o.VerifyingKey) == 0 || o.Print == nil {
		return nil, errors.New("start stack: every option is required, and ports from Claim")
	}
	if o.State, err = filepath.Abs(o.State); err != nil {
		return nil, fmt.Errorf("start stack: %w", err)
	}
	s := &Stack{
		RelayURL: "http://" + address(o.Ports.Relay), OperationsURL: "http://" + address(o.Ports.Operations), ChainURL: "http://" + address(o.Ports.Chain),
		OutputMint: localnet.OutputMint(),
		RouterURL:  "http://" + address(o.Ports.Router), AdminURL: "http://" + address(o.Ports.Admin),
		o: o,
	}
	s.RelayLog, s.ChainLog = s.file("relay.log"), s.file("localnet.log")
	// Logs are of one run; the programs add to them.
	for _, log := range []string{s.RelayLog, s.ChainLog} {
		if err := os.Remove(log); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("start stack: %w", err)
		}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
		}
	}()
	// Postgres goes first: its lock keeps a second run off the whole folder.
	for _, start := range []func(context.Context) error{s.startPostgres, s.build, s.startChain, s.startRelay} {
		if err := start(ctx); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Stack) file(name string) string { return filepath.Join(s.o.State, name) }

func (s *Stack) startPostgres(ctx context.Context) error {
	began := time.Now()
	defer s.o.Print.Busy("starting Postgres")()
	var err error
	if s.postgres, err = postgres.Start(ctx, postgres.Options{DataDir: s.file("postgres"), Log: s.o.Print}); err != nil {
		return err
	}
	if err := s.freshDatabase(ctx); err != nil {
		return err
	}
	if err := os.WriteFile(s.file("database-url"), []byte(s.postgres.URL(database)+"\n"), 0o600); err != nil {
		return fmt.Errorf("write the database's URL: %w", err)
	}
	s.o.Print.Fact("Postgres", "on a private socket, in %s", terminal.Seconds(time.Since(began)))
	return nil
}

// freshDatabase drops what an earlier run left: the local chain that it speaks
// of lived in memory and is gone.
func (s *Stack) freshDatabase(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.postgres.URL("postgres"))
	if err != nil {
		return fmt.Errorf("make a fresh database: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+database+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("make a fresh database: %w", err)
	}
	return s.postgres.CreateDatabase(ctx, database)
}

// build makes the programs from the checkout, so that what runs is what the
// reader has before them.
func (s *Stack) build(ctx context.Context) error {
	began := time.Now()
	defer s.o.Print.Busy("building relay and local chain (minutes the first time)")()
	bin := s.file("bin")
	if err := os.MkdirAll(bin, 0o750); err != nil {
		return fmt.Errorf("build programs: %w", err)
	}
	// The separator at the end makes it a folder for several programs. The flags
	// are those that built us, so that what is compiled already serves again.
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", bin+string(filepath.Separator), "./relay/cmd/relay", "./hack/localnet/cmd/localnet")
	cmd.Dir = s.o.Root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build relay and local chain: %w\n%s", err, out)
	}
	s.o.Print.Fact("programs", "relay and localnet, built in %s", terminal.Seconds(time.Since(began)))
	return makeKeys(ctx, s.program("relay"), s.file("keys"))
}

func (s *Stack) program(name string) string { return filepath.Join(s.o.State, "bin", name) }

func (s *Stack) startChain(ctx context.Context) error {
	began := time.Now()
	defer s.o.Print.Busy("starting the local chain")()
	if err := os.WriteFile(s.file("verification_key.json"), s.o.VerifyingKey, 0o600); err != nil {
		return fmt.Errorf("write the verifying key: %w", err)
	}
	var err error
	s.chain, err = process.Start("the local chain", s.ChainLog, s.program("localnet"),
		"-listen", address(s.o.Ports.Chain), "-router", address(s.o.Ports.Router), "-admin", address(s.o.Ports.Admin),
		"-vk", s.file("verification_key.json"), "-initialise")
	if err != nil {
		return err
	}
	client := rpc.New(s.ChainURL)
	if err := s.await(ctx, s.chain, "the local chain is healthy", func(ctx context.Context) error {
		_, err := client.GetHealth(ctx)
		return err
	}); err != nil {
		return err
	}
	s.o.Print.Fact("local chain", "%s, with a market and its router on %s, in %s", s.ChainURL, s.RouterURL, terminal.Seconds(time.Since(began)))
	return s.fundFeePayer(ctx, client)
}

func (s *Stack) fundFeePayer(ctx context.Context, client *rpc.Client) error {
	var err error
	if s.FeePayer, err = feePayer(s.file("keys")); err != nil {
		return err
	}
	if _, err := client.RequestAirdrop(ctx, s.FeePayer, feePayerLamports, rpc.CommitmentConfirmed); err != nil {
		return fmt.Errorf("fund the fee payer: %w", err)
	}
	if err := s.await(ctx, s.chain, "the fee payer is funded", func(ctx context.Context) error {
		balance, err := client.GetBalance(ctx, s.FeePayer, rpc.CommitmentConfirmed)
		if err == nil && balance.Value < feePayerLamports {
			err = fmt.Errorf("it holds %s, expected %s", terminal.Lamports(balance.Value), terminal.Lamports(feePayerLamports))
		}
		return err
	}); err != nil {
		return err
	}
	s.o.Print.Fact("fee payer", "%s, funded with %s by airdrop", s.FeePayer, terminal.Lamports(feePayerLamports))
	return nil
}

func (s *Stack) startRelay(ctx context.Context) error {
	began := time.Now()
	defer s.o.Print.Busy("starting the relay")()
	var err error
	s.relay, err = process.Start("the relay", s.RelayLog, s.program("relay"), "serve",
		"--listen="+address(s.o.Ports.Relay),
		"--operations-listen="+address(s.o.Ports.Operations),
		"--database-url-file="+s.file("database-url"),
		"--rpc-url="+s.ChainURL,
		"--genesis-hash="+shieldpool.DevelopmentGenesisHash.String(),
		"--profile="+shieldpool.Development().Name,
		"--verifying-key="+s.file("verification_key.json"),
		"--fee-payer-key-file="+filepath.Join(s.file("keys"), feePayerFile),
		"--router-url="+s.RouterURL,
		"--router-program="+market.ProgramID.String(),
		"--compliance-public-key-file="+filepath.Join(s.file("keys"), compliancePublicFile))
	if err != nil {
		return err
	}
	if err := s.await(ctx, s.relay, "the relay is ready", func(ctx context.Context) error {
		return ready(ctx, s.OperationsURL+contract.ReadinessPath)
	}); err != nil {
		return err
	}
	if err := s.await(ctx, s.relay, "the relay is healthy", func(ctx context.Context) error {
		return healthy(ctx, s.OperationsURL)
	}); err != nil {
		return err
	}
	s.o.Print.Fact("relay", "%s, operations on %s, in %s", s.RelayURL, s.OperationsURL, terminal.Seconds(time.Since(began)))
	return nil
}

// While runs work, and ends it when the relay or the chain ends by itself: then
// its error says so, with the end of that process' log.
func (s *Stack) While(ctx context.Context, work func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-ctx.Done():
		case <-s.chain.Exited():
			cancel(s.chain.Ended())
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

// Stop ends the relay first, which may have submissions under way, then the
// chain that they go to, then the database that holds them. It stops everything
// even when a part does not stop well, and says so.
func (s *Stack) Stop(ctx context.Context) error {
	defer s.o.Print.Busy("stopping relay, local chain and Postgres")()
	err := errors.Join(s.relay.Stop(contract.TerminationGrace), s.chain.Stop(chainGrace))
	if s.postgres == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stopPostgresWithin)
	defer cancel()
	return errors.Join(err, s.postgres.Stop(ctx))
}
