// Package sandbox runs relays and everything that they need on one machine, for
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

// PoolLamports is a balance of the pool that is enough for all withdrawals of a run
// without deposits.
const PoolLamports = 1_000_000 * solana.LAMPORTS_PER_SOL

// Sandbox is a folder and the processes that use it. Call New, BuildRelay, MakeKeys,
// StartPostgres, FreshDatabase, StartChain and NewRelay in this order.
type Sandbox struct {
	// VerifyingKey is the development key, and Pool is the development pool.
	VerifyingKey []byte
	Pool         *shieldpool.Pool
	// Payers are the keys of the relays' fee payers. Compliance is the public key to which
	// relays seal viewing keys.
	Payers     []solana.PrivateKey
	Compliance string
	Postgres   *postgres.Server
	// Chain is the local chain, URL is the URL of its default endpoint, and Router is the URL
	// of its swap router.
	Chain       *localnet.Chain
	URL, Router string

	root, state string
	log         io.Writer
	relays      []*Relay
}

// New opens the folder state, and creates it if missing. root is the checkout from which
// programs are built. log receives a line for each slow step.
func New(root, state string, log io.Writer) (_ *Sandbox, err error) {
	s := &Sandbox{log: log}
	if s.root, err = filepath.Abs(root); err != nil {
		return nil, fmt.Errorf("open the sandbox: %w", err)
	}
	if s.state, err = filepath.Abs(state); err != nil {
		return nil, fmt.Errorf("open the sandbox: %w", err)
	}
	// Postgres may run as another user, who must enter the folder. Secret files have their own
	// modes.
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

// File is the path of a file in the folder.
func (s *Sandbox) File(name string) string { return filepath.Join(s.state, name) }

func (s *Sandbox) keyFile() string {
	return filepath.Join(s.root, "hack", "circuit", "verification_key.json")
}

// Simulator makes proofs under the development key without the circuit.
func (s *Sandbox) Simulator() (*simulator.Simulator, error) {
	return simulator.New(s.VerifyingKey, simulator.DevelopmentSeed)
}

// Market is the chain's market, for clients that swap. The clients get the price from the
// chain, because the relays' router may be down or lie.
func (s *Sandbox) Market() *load.Market {
	return &load.Market{Pool: s.Pool, Mint: localnet.OutputMint(), Quote: func(_ context.Context, _ solana.PublicKey, lamports uint64) (uint64, error) {
		state, err := s.Chain.MarketState()
		if err != nil {
			return 0, err
		}
		return state.Output(lamports), nil
	}}
}

// Build compiles a program of the checkout into the folder's bin. flags are further flags of
// go build.
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

// Start starts a program that Build has compiled. The log file has the process's name.
func (s *Sandbox) Start(name, program string, args ...string) (*process.Process, error) {
	return process.Start(name, s.logFile(name), s.program(program), args...)
}

func (s *Sandbox) logFile(name string) string {
	return s.File(strings.ReplaceAll(name, " ", "-") + ".log")
}

// Command runs a command of the relay, such as migrate, and waits for its end. The error
// contains the command's output.
func (s *Sandbox) Command(ctx context.Context, args ...string) (stdout string, err error) {
	command := exec.CommandContext(ctx, s.program("relay"), args...)
	command.Env = process.OwnEnvironment(os.Environ())
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		err = fmt.Errorf("run relay %s: %w: %s%s", args[0], err, out, bytes.TrimSpace(stderr.Bytes()))
	}
	return string(out), err
}

// MakeKeys derives the fee payers' keys from a seed. It also has the relay create a
// compliance key, unless the folder has one.
func (s *Sandbox) MakeKeys(ctx context.Context, payers int, seed uint64) error {
	if err := os.MkdirAll(s.File("payers"), 0o750); err != nil {
		return fmt.Errorf("make the fee payers' folder: %w", err)
	}
	r := rand.New(rand.NewPCG(seed, 0x7061796572)) //nolint:gosec // keys of a local chain, whose lamports have no value
	s.Payers = nil
	for range payers {
		var entropy []byte
		for len(entropy) < ed25519.SeedSize {
			entropy = binary.LittleEndian.AppendUint64(entropy, r.Uint64())
		}
		key := ed25519.NewKeyFromSeed(entropy)
		numbers := make([]int, len(key)) // the form of solana-keygen: an array of numbers
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
		_ = os.Remove(private) // left by a run that ended between writing the two files
		var created string
		if created, err = s.Command(ctx, "compliance", "keygen", private); err == nil {
			text = []byte(created)
			err = os.WriteFile(public, text, 0o600)
		}
	}
	s.Compliance = strings.TrimSpace(string(text))
	return err
}

// PayerFile is the path of a fee payer's key. Numbers start at 1.
func (s *Sandbox) PayerFile(number int) string {
	return s.File(filepath.Join("payers", fmt.Sprintf("payer-%d.json", number)))
}

// StartPostgres starts a server with durable commits.
func (s *Sandbox) StartPostgres(ctx context.Context) (err error) {
	s.Postgres, err = postgres.Start(ctx, postgres.Options{DataDir: s.File("postgres"), Log: s.log})
	return err
}

// WithDatabase calls f with a new connection to a database and closes the connection.
func (s *Sandbox) WithDatabase(ctx context.Context, database string, f func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, s.Postgres.URL(database))
	if err != nil {
		return fmt.Errorf("connect to database %s: %w", database, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return f(conn)
}

// Select runs a query on a new connection to a database, and scans its rows.
func Select[T any](ctx context.Context, s *Sandbox, database string, scan pgx.RowToFunc[T], sql string, args ...any) (out []T, err error) {
	err = s.WithDatabase(ctx, database, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, scan)
		return err
	})
	return out, err
}

// SQL runs statements on a new connection to a database.
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

// DropDatabase drops a database, even one with connections.
func (s *Sandbox) DropDatabase(ctx context.Context, name string) error {
	return s.SQL(ctx, "postgres", drop(name))
}

func drop(name string) string { return "DROP DATABASE IF EXISTS " + name + " WITH (FORCE)" }

// FreshDatabase creates a database as a copy of template (template1 if empty), and makes
// relays that start later use it. It first drops the database of an earlier run, because
// the chain of that run no longer exists.
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

// StartChain makes a chain with an initialised pool, funds accounts with lamports and starts the
// slots. The chain and the router listen on the given addresses, or on free ports.
func (s *Sandbox) StartChain(ctx context.Context, o localnet.Options, addresses Addresses, lamports map[solana.PublicKey]uint64) (err error) {
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
	if s.URL, err = s.Chain.Listen(cmp.Or(addresses.Chain, anyPort)); err != nil {
		return err
	}
	if s.Router, err = s.Chain.ListenRouter(cmp.Or(addresses.Router, anyPort)); err != nil {
		return err
	}
	if addresses.Admin != "" {
		if _, err := s.Chain.ListenAdmin(addresses.Admin); err != nil {
			return err
		}
	}
	s.Chain.Start(context.WithoutCancel(ctx))
	return nil
}

// Addresses are the listen addresses of a chain. An empty Chain or Router means a free
// port on 127.0.0.1. An empty Admin means no admin port.
type Addresses struct{ Chain, Router, Admin string }

const anyPort = "127.0.0.1:0"

// Send sends a transaction to the default endpoint, with a compute limit of units. All of keys
// sign, and the first pays. A caller that competes with the relays may ignore the error.
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
	if _, err := tx.Sign(func(signer solana.PublicKey) *solana.PrivateKey {
		return &keys[slices.IndexFunc(keys, func(key solana.PrivateKey) bool { return key.PublicKey() == signer })]
	}); err != nil {
		return err
	}
	_, err = client.SendTransactionWithOpts(ctx, tx, rpc.TransactionOpts{SkipPreflight: skipPreflight, PreflightCommitment: rpc.CommitmentConfirmed})
	return err
}

// URLs are the URLs of the relays' APIs.
func (s *Sandbox) URLs() (urls []string) {
	for _, r := range s.relays {
		urls = append(urls, r.URL)
	}
	return urls
}

// Ledger runs the relay's command ledger, which updates the fee payers' accounting from
// the chain and accounts for every lamport.
func (s *Sandbox) Ledger(ctx context.Context) (stdout string, err error) {
	return s.Command(ctx, "ledger", "--database-url-file="+s.databaseFile(), "--rpc-url="+s.URL)
}

// Migrate runs the relay's command migrate, which creates the relay's tables.
func (s *Sandbox) Migrate(ctx context.Context) error {
	_, err := s.Command(ctx, "migrate", "--database-url-file="+s.databaseFile())
	return err
}

// StopRelays kills the relays that still run and closes the chain. Another chain and other
// relays may then start on the same Postgres server.
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

// Close stops everything. After an error in one part, it still stops the others. The
// files stay in the folder.
func (s *Sandbox) Close(ctx context.Context) error {
	err := s.StopRelays()
	if s.Postgres == nil {
		return err
	}
	err = errors.Join(err, s.Postgres.Close(ctx))
	// Postgres has its data outside of our folder when its user cannot reach our folder.
	if dir := s.Postgres.Dir(); !strings.HasPrefix(dir, s.state) {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}
