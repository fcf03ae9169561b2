// Package sandbox runs everything that a relay needs on one machine, for
// demonstrations, drills and benchmarks: a private Postgres, the local chain with its
// pool, market and router, and relays as real processes.
package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/postgres"
	"github.com/relaypool/relaypool/hack/process"
	"github.com/relaypool/relaypool/hack/wallet/simulator"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// PoolLamports are enough for every withdrawal of a run without deposits.
const PoolLamports = 1_000_000 * solana.LAMPORTS_PER_SOL

// Sandbox is a folder and the processes that use it. Call its steps one by one, in the
// order of the methods: New, Build, MakeKeys, StartPostgres, StartChain, NewRelay.
type Sandbox struct {
	// VerifyingKey is the development key, and Pool the development pool.
	VerifyingKey []byte
	Pool         *shieldpool.Pool
	// Payers are the relays' fee payers, and Compliance is the public key that
	// viewing keys are sealed to.
	Payers     []solana.PrivateKey
	Compliance string
	Postgres   *postgres.Server
	// Chain is the local chain, URL its address without faults, Router its swap
	// router's URL.
	Chain       *localnet.Chain
	URL, Router string

	root, state string
	log         io.Writer
	relays      []*Relay
}

// New opens a folder, and makes it when missing. Root is the checkout that the relay is
// built from; log receives a line for each slow step.
func New(root, state string, log io.Writer) (_ *Sandbox, err error) {
	s := &Sandbox{log: log}
	if s.root, err = filepath.Abs(root); err != nil {
		return nil, fmt.Errorf("open the sandbox: %w", err)
	}
	if s.state, err = filepath.Abs(state); err != nil {
		return nil, fmt.Errorf("open the sandbox: %w", err)
	}
	// Postgres may run as another user, who needs to enter; secret files have their own modes.
	if err := os.MkdirAll(s.state, 0o755); err != nil { //nolint:gosec // see above
		return nil, fmt.Errorf("open the sandbox: %w", err)
	}
	if s.VerifyingKey, err = os.ReadFile(s.keyFile()); err != nil {
		return nil, fmt.Errorf("read the development key: %w", err)
	}
	profile := shieldpool.Development()
	s.Pool, err = profile.Pool(profile.Mints[0])
	return s, err
}

// File is a path in the folder.
func (s *Sandbox) File(name string) string { return filepath.Join(s.state, name) }

func (s *Sandbox) keyFile() string {
	return filepath.Join(s.root, "hack", "circuit", "verification_key.json")
}

// Simulator proves for the pool without a prover.
func (s *Sandbox) Simulator() (*simulator.Simulator, error) {
	return simulator.New(s.VerifyingKey, simulator.DevelopmentSeed)
}

// Market is the chain's market, for clients that swap. They ask the chain for the
// price, because the relays' router may be down, or lie.
func (s *Sandbox) Market() *load.Market {
	return &load.Market{Pool: s.Pool, Mint: localnet.OutputMint(), Quote: func(_ context.Context, _ solana.PublicKey, lamports uint64) (uint64, error) {
		state, err := s.Chain.MarketState()
		if err != nil {
			return 0, err
		}
		return state.Output(lamports), nil
	}}
}

// Build compiles a program of the checkout into bin, with additional flags for go build.
func (s *Sandbox) Build(ctx context.Context, program string, flags ...string) error {
	args := append([]string{"build", "-buildvcs=false", "-o", s.program(filepath.Base(program))}, flags...)
	build := exec.CommandContext(ctx, "go", append(args, program)...)
	build.Dir = s.root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", program, err, out)
	}
	return nil
}

// BuildRelay is Build for the relay, which every other step needs.
func (s *Sandbox) BuildRelay(ctx context.Context, flags ...string) error {
	return s.Build(ctx, "./relay/cmd/relay", flags...)
}

func (s *Sandbox) program(name string) string { return s.File(filepath.Join("bin", name)) }

// Start starts a program that Build has compiled, with a log of its name.
func (s *Sandbox) Start(name, program string, args ...string) (*process.Process, error) {
	return process.Start(name, s.logFile(name), s.program(program), args...)
}

func (s *Sandbox) logFile(name string) string {
	return s.File(strings.ReplaceAll(name, " ", "-") + ".log")
}

// Command runs one of the relay's short commands. Its error contains the command's output.
func (s *Sandbox) Command(ctx context.Context, args ...string) (stdout string, err error) {
	command := exec.CommandContext(ctx, s.program("relay"), args...)
	command.Env = process.OwnEnvironment(os.Environ())
	var complaint bytes.Buffer
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil {
		err = fmt.Errorf("run relay %s: %w: %s%s", args[0], err, out, bytes.TrimSpace(complaint.Bytes()))
	}
	return string(out), err
}

// MakeKeys derives the fee payers' keys from a seed and makes the relay create a
// compliance key, unless the folder has one.
func (s *Sandbox) MakeKeys(ctx context.Context, payers int, seed uint64) error {
	if err := os.MkdirAll(s.File("payers"), 0o750); err != nil {
		return fmt.Errorf("make the fee payers' folder: %w", err)
	}
	r := rand.New(rand.NewPCG(seed, 0x7061796572)) //nolint:gosec // keys of a local chain that is worth nothing
	s.Payers = nil
	for range payers {
		var entropy []byte
		for len(entropy) < ed25519.SeedSize {
			entropy = binary.LittleEndian.AppendUint64(entropy, r.Uint64())
		}
		key := ed25519.NewKeyFromSeed(entropy)
		numbers := make([]int, len(key)) // as solana-keygen writes it
		for n, b := range key {
			numbers[n] = int(b)
		}
		text, err := json.Marshal(numbers)
		if err != nil {
			return fmt.Errorf("encode a fee payer's key: %w", err)
		}
		s.Payers = append(s.Payers, solana.PrivateKey(key))
		if err := os.WriteFile(s.PayerFile(len(s.Payers)), text, 0o600); err != nil {
			return fmt.Errorf("write a fee payer's key: %w", err)
		}
	}
	private, public := s.File("compliance-private.key"), s.File("compliance-public.hex")
	text, err := os.ReadFile(public)
	if errors.Is(err, os.ErrNotExist) {
		_ = os.Remove(private) // from a run interrupted between writing the two files
		var made string
		if made, err = s.Command(ctx, "compliance", "keygen", private); err == nil {
			text = []byte(made)
			err = os.WriteFile(public, text, 0o600)
		}
	}
	s.Compliance = strings.TrimSpace(string(text))
	return err
}

// PayerFile is the path of a fee payer's key, counted from 1.
func (s *Sandbox) PayerFile(number int) string {
	return s.File(filepath.Join("payers", fmt.Sprintf("payer-%d.json", number)))
}

// StartPostgres starts a server with durable commits.
func (s *Sandbox) StartPostgres(ctx context.Context) (err error) {
	s.Postgres, err = postgres.Start(ctx, postgres.Options{DataDir: s.File("postgres"), Log: s.log})
	return err
}

// WithDatabase lends a connection to a database.
func (s *Sandbox) WithDatabase(ctx context.Context, database string, f func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, s.Postgres.URL(database))
	if err != nil {
		return fmt.Errorf("connect to database %s: %w", database, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return f(conn)
}

// SQL runs statements on a connection of their own.
func (s *Sandbox) SQL(ctx context.Context, database string, statements ...string) error {
	return s.WithDatabase(ctx, database, func(conn *pgx.Conn) error {
		for _, text := range statements {
			if _, err := conn.Exec(ctx, text); err != nil {
				return fmt.Errorf("run %.40q: %w", text, err)
			}
		}
		return nil
	})
}

// DropDatabase deletes a database, even while it is in use.
func (s *Sandbox) DropDatabase(ctx context.Context, name string) error {
	return s.SQL(ctx, "postgres", drop(name))
}

func drop(name string) string { return "DROP DATABASE IF EXISTS " + name + " WITH (FORCE)" }

// FreshDatabase makes a database as a copy of another, of template1 when that is empty,
// and makes the relays use it from now on. It drops a database of an earlier run, whose
// chain is gone.
func (s *Sandbox) FreshDatabase(ctx context.Context, name, template string) error {
	create := "CREATE DATABASE " + name
	if template != "" {
		create += " TEMPLATE " + template
	}
	if err := s.SQL(ctx, "postgres", drop(name), create); err != nil {
		return fmt.Errorf("make a fresh database: %w", err)
	}
	if err := os.WriteFile(s.databaseFile(), []byte(s.Postgres.URL(name)+"\n"), 0o600); err != nil {
		return fmt.Errorf("write the database's URL: %w", err)
	}
	return nil
}

func (s *Sandbox) databaseFile() string { return s.File("database-url") }

// StartChain makes a chain with the pool initialised, gives lamports to accounts
// and lets its slots advance. It listens on free ports unless addresses say more.
func (s *Sandbox) StartChain(ctx context.Context, o localnet.Options, at Addresses, lamports map[solana.PublicKey]uint64) (err error) {
	o.VerifyingKey, o.Initialised = s.VerifyingKey, true
	if s.Chain, err = localnet.New(o); err != nil {
		return err
	}
	for key, amount := range lamports {
		if err := s.Chain.Fund(key, amount); err != nil {
			return err
		}
	}
	s.Chain.Finalize()
	if s.URL, err = s.Chain.Listen(cmp.Or(at.Chain, anyPort)); err != nil {
		return err
	}
	if s.Router, err = s.Chain.ListenRouter(cmp.Or(at.Router, anyPort)); err != nil {
		return err
	}
	if at.Admin != "" {
		if _, err := s.Chain.ListenAdmin(at.Admin); err != nil {
			return err
		}
	}
	s.Chain.Start(context.WithoutCancel(ctx))
	return nil
}

// Addresses are the addresses of a chain on 127.0.0.1. Without Admin it has no admin
// port.
type Addresses struct{ Chain, Router, Admin string }

const anyPort = "127.0.0.1:0"

// Send sends a transaction signed by keys, the first of which pays, without any fault. A
// caller that competes with the relays may ignore the error: the chain decides.
func (s *Sandbox) Send(ctx context.Context, units uint32, skipPreflight bool, keys []solana.PrivateKey, instructions ...solana.Instruction) error {
	client := rpc.New(s.URL)
	latest, err := client.GetLatestBlockhash(ctx, rpc.CommitmentConfirmed)
	if err != nil {
		return err
	}
	tx, err := shieldpool.Versioned(keys[0].PublicKey(), shieldpool.Compute{Limit: units}, latest.Value.Blockhash, nil, instructions...)
	if err != nil {
		return err
	}
	if _, err := tx.Sign(func(who solana.PublicKey) *solana.PrivateKey {
		return &keys[slices.IndexFunc(keys, func(key solana.PrivateKey) bool { return key.PublicKey() == who })]
	}); err != nil {
		return err
	}
	_, err = client.SendTransactionWithOpts(ctx, tx, rpc.TransactionOpts{SkipPreflight: skipPreflight, PreflightCommitment: rpc.CommitmentConfirmed})
	return err
}

// URLs are the relays' APIs.
func (s *Sandbox) URLs() (urls []string) {
	for _, r := range s.relays {
		urls = append(urls, r.URL)
	}
	return urls
}

// Ledger makes the relay's own command update its ledger to the chain and account for
// every lamport.
func (s *Sandbox) Ledger(ctx context.Context) (stdout string, err error) {
	return s.Command(ctx, "ledger", "--database-url-file="+s.databaseFile(), "--rpc-url="+s.URL)
}

// Migrate makes the relay's tables in the database.
func (s *Sandbox) Migrate(ctx context.Context) error {
	_, err := s.Command(ctx, "migrate", "--database-url-file="+s.databaseFile())
	return err
}

// StopRelays kills the relays that still run and closes the chain, so that others
// may be started on the same server.
func (s *Sandbox) StopRelays() error {
	var errs []error
	for _, r := range s.relays {
		errs = append(errs, r.Kill())
	}
	s.relays = nil
	if s.Chain != nil {
		errs = append(errs, s.Chain.Close())
		s.Chain = nil
	}
	return errors.Join(errs...)
}

// Close stops everything, even when a part does not stop well. The folder keeps the
// remaining files.
func (s *Sandbox) Close(ctx context.Context) error {
	err := s.StopRelays()
	if s.Postgres == nil {
		return err
	}
	err = errors.Join(err, s.Postgres.Close(ctx))
	// Postgres keeps its data elsewhere when its user cannot reach our folder.
	if dir := s.Postgres.Dir(); !strings.HasPrefix(dir, s.state) {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}
