// Package stage is a fleet to look at: real relays with Postgres and the local
// chain, clients that load them, and things that go wrong, so that there is
// something on every dashboard.
package stage

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/freeport"
	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/market"
	"github.com/relaypool/relaypool/hack/postgres"
	"github.com/relaypool/relaypool/hack/process"
	"github.com/relaypool/relaypool/hack/wallet/simulator"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Options of a stage. All are required.
type Options struct {
	// Root is the checkout that the relay is built from, State an empty folder.
	Root, State string
	// Namespace and Pool are the RelayPool's that the operator looks after.
	Namespace, Pool string
	// Slot is the chain's.
	Slot time.Duration
	// Rate is the average of new spends a second.
	Rate float64
	// Progress receives a line for each thing that happens.
	Progress io.Writer
}

const (
	relays, payers, endpoints = 2, 2, 2
	// database is the fleet's, connections those of each relay.
	database, connections = "relaypool", 16
	// minimum is what a payer has to keep. The second one is funded with no more
	// than little above it, and runs dry.
	minimum, little = 50_000_000, 60_000_000
	plenty          = 50 * solana.LAMPORTS_PER_SOL
	poolFunds       = 1_000_000 * solana.LAMPORTS_PER_SOL
	// capHour is never reached, capTransfers soon.
	capHour, capTransfers = 20_000_000_000, 60_000_000
	// budget is the second endpoint's plan, in requests a second: too small.
	budget = 6
	// concurrency leaves a queue in a burst.
	concurrency = 6

	readyWithin = time.Minute
	readyPoll   = 50 * time.Millisecond
	chainName   = "endpoint-%d"
	payerFile   = "payer-%d.json"
)

// Stage is a fleet that runs.
type Stage struct {
	o        Options
	postgres *postgres.Server
	chain    *localnet.Chain
	pool     *shieldpool.Pool
	honest   string
	router   string
	urls     []string
	keys     []solana.PublicKey
	// secret is the first payer's, for a thief.
	secret   solana.PrivateKey
	relays   []*relay
	load     *load.Load
	http     *http.Client
	began    time.Time
	operator operator
	// compliance is the public key that viewing keys are sealed to.
	compliance string
}

// relay is one relay's process and how to start it again.
type relay struct {
	name, url, operations string
	arguments             []string
	process               *process.Process
}

// Start builds and starts everything. Close ends it.
func Start(ctx context.Context, o Options) (_ *Stage, err error) {
	if o.Root == "" || o.State == "" || o.Namespace == "" || o.Pool == "" || o.Slot <= 0 || o.Rate <= 0 || o.Progress == nil {
		return nil, errors.New("start the stage: every option is required")
	}
	s := &Stage{o: o, http: &http.Client{}, began: time.Now()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close(context.WithoutCancel(ctx)))
		}
	}()
	for _, step := range []func(context.Context) error{s.build, s.makePayers, s.startChain, s.startPostgres, s.startRelays, s.startOperator, s.makeLoad} {
		if err := step(ctx); err != nil {
			return nil, fmt.Errorf("start the stage: %w", err)
		}
	}
	return s, nil
}

func (s *Stage) file(name string) string { return filepath.Join(s.o.State, name) }

func (s *Stage) say(format string, args ...any) {
	fmt.Fprintf(s.o.Progress, "%6.1f s  %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

func (s *Stage) build(ctx context.Context) error {
	s.say("building the relay")
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", s.file("relay"), "./relay/cmd/relay")
	build.Dir = s.o.Root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the relay: %w\n%s", err, out)
	}
	return nil
}

// makePayers writes keys of a chain that is worth nothing.
func (s *Stage) makePayers(context.Context) error {
	if err := os.MkdirAll(s.file("payers"), 0o750); err != nil {
		return err
	}
	for i := range payers {
		seed := make([]byte, ed25519.SeedSize)
		r := rand.New(rand.NewPCG(1, uint64(i))) //nolint:gosec // see above
		for n := range seed {
			seed[n] = byte(r.IntN(256)) //nolint:gosec // below 256
		}
		key := ed25519.NewKeyFromSeed(seed)
		numbers := make([]int, len(key))
		for n, b := range key {
			numbers[n] = int(b)
		}
		text, err := json.Marshal(numbers)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(s.file("payers"), fmt.Sprintf(payerFile, i+1)), text, 0o600); err != nil {
			return err
		}
		s.keys = append(s.keys, solana.PrivateKey(key).PublicKey())
		if i == 0 {
			s.secret = solana.PrivateKey(key)
		}
	}
	return nil
}

func (s *Stage) key() string {
	return filepath.Join(s.o.Root, "hack", "circuit", "verification_key.json")
}

func (s *Stage) startChain(ctx context.Context) error {
	key, err := os.ReadFile(s.key())
	if err != nil {
		return err
	}
	if s.chain, err = localnet.New(localnet.Options{VerifyingKey: key, SlotDuration: s.o.Slot, Seed: 1, Initialised: true}); err != nil {
		return err
	}
	if s.honest, err = s.chain.Listen("127.0.0.1:0"); err != nil {
		return err
	}
	if s.router, err = s.chain.ListenRouter("127.0.0.1:0"); err != nil {
		return err
	}
	for i := range endpoints {
		url, err := s.chain.ListenEndpoint(fmt.Sprintf(chainName, i+1), "127.0.0.1:0")
		if err != nil {
			return err
		}
		s.urls = append(s.urls, url)
	}
	profile := shieldpool.Development()
	if s.pool, err = profile.Pool(profile.Mints[0]); err != nil {
		return err
	}
	if err := errors.Join(s.chain.Fund(s.pool.Address, poolFunds), s.chain.Fund(s.keys[0], plenty), s.chain.Fund(s.keys[1], minimum+little)); err != nil {
		return err
	}
	s.chain.Finalize()
	s.chain.Start(context.WithoutCancel(ctx))
	return nil
}

func (s *Stage) startPostgres(ctx context.Context) (err error) {
	s.say("starting Postgres")
	if s.postgres, err = postgres.Start(ctx, postgres.Options{DataDir: s.file("postgres"), Log: s.o.Progress}); err != nil {
		return err
	}
	if err := s.postgres.CreateDatabase(ctx, database); err != nil {
		return err
	}
	return os.WriteFile(s.file("database-url"), []byte(s.postgres.URL(database)+"\n"), 0o600)
}

func (s *Stage) startRelays(ctx context.Context) error {
	s.say("starting %d relays", relays)
	type endpoint struct {
		Name   string `json:"name"`
		URL    string `json:"url"`
		Budget int    `json:"requestsPerSecond,omitempty"`
	}
	list, err := json.Marshal([]endpoint{{fmt.Sprintf(chainName, 1), s.urls[0], 0}, {fmt.Sprintf(chainName, 2), s.urls[1], budget}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.file("endpoints.json"), list, 0o600); err != nil {
		return err
	}
	public, err := s.command(ctx, "compliance", "keygen", s.file("compliance-private.key"))
	if err != nil {
		return err
	}
	s.compliance = strings.TrimSpace(public)
	for i := range relays {
		addresses, err := freeport.Find(ctx, 2)
		if err != nil {
			return err
		}
		api, operations := addresses[0], addresses[1]
		s.relays = append(s.relays, &relay{name: fmt.Sprintf("relay-%d", i+1), url: "http://" + api, operations: operations, arguments: []string{
			"serve", "--listen=" + api, "--operations-listen=" + operations,
			"--database-url-file=" + s.file("database-url"), fmt.Sprintf("--database-max-connections=%d", connections),
			"--rpc-endpoints-file=" + s.file("endpoints.json"), "--genesis-hash=" + shieldpool.DevelopmentGenesisHash.String(),
			"--profile=" + shieldpool.Development().Name, "--verifying-key=" + s.key(), "--fee-payer-key-file=" + s.file("payers"),
			fmt.Sprintf("--fee-payer-min-balance=%d", minimum), fmt.Sprintf("--spend-cap-hour=%d", capHour), fmt.Sprintf("--spend-cap-transfers-day=%d", capTransfers),
			"--compliance-public-key=" + s.compliance, "--rate-limit=0", fmt.Sprintf("--concurrency=%d", concurrency),
			"--router-url=" + s.router, "--router-program=" + market.ProgramID.String(), "--log-format=json",
		}})
	}
	for _, r := range s.relays {
		if err := s.startRelay(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// startRelay starts a relay's process and waits until it serves the chain.
func (s *Stage) startRelay(ctx context.Context, r *relay) (err error) {
	if r.process, err = process.Start(r.name, s.file(r.name+".log"), s.file("relay"), r.arguments...); err != nil {
		return err
	}
	return s.await(ctx, r.process, func(ctx context.Context) error {
		// Ready says nothing of the chain; the root does.
		return errors.Join(s.get(ctx, "http://"+r.operations+contract.ReadinessPath), s.get(ctx, r.url+contract.MerkleRootPath))
	})
}

// await asks until check is content, and no longer than the process lives.
func (s *Stage) await(ctx context.Context, p *process.Process, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if ended := p.Ended(); ended != nil {
			return ended
		}
		if !wait(ctx, readyPoll) {
			return fmt.Errorf("wait until a process serves: %w; its log is %s", err, p.Log())
		}
	}
}

func (s *Stage) get(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := s.http.Do(request)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answered %d", request.URL.Path, answer.StatusCode)
	}
	return errors.Join(err, answer.Body.Close())
}

// command runs the relay's program for something short.
func (s *Stage) command(ctx context.Context, args ...string) (stdout string, err error) {
	command := exec.CommandContext(ctx, s.file("relay"), args...)
	command.Env = process.OwnEnvironment(os.Environ())
	out, err := command.Output()
	if err != nil {
		return string(out), fmt.Errorf("run relay %s: %w", args[0], err)
	}
	return string(out), nil
}

func (s *Stage) makeLoad(context.Context) error {
	key, err := os.ReadFile(s.key())
	if err != nil {
		return err
	}
	prover, err := simulator.New(key, simulator.DevelopmentSeed)
	if err != nil {
		return err
	}
	var urls []string
	for _, r := range s.relays {
		urls = append(urls, r.url)
	}
	s.load, err = load.New(load.Options{
		Relays: urls, Simulator: prover, Mint: s.pool.Mint, Seed: 1, HTTP: s.http, Now: time.Now,
		Rate: s.o.Rate, InFlight: inFlight, Withdrawals: 0.6, Rivals: 0.05,
		Swaps: 0.25, Unreachable: 0.2, Market: &load.Market{Pool: s.pool, Mint: localnet.OutputMint(), Quote: s.quote},
		PollMin: time.Second, PollMax: 2 * time.Second, PauseMax: 4 * time.Second,
	})
	return err
}

// inFlight bounds the clients.
const inFlight = 200

// quote is what the market gives now, whatever the relays' router says.
func (s *Stage) quote(_ context.Context, _ solana.PublicKey, lamports uint64) (uint64, error) {
	state, err := s.chain.MarketState()
	if err != nil {
		return 0, err
	}
	return state.Output(lamports), nil
}

// Relay is where one relay is scraped.
type Relay struct{ Name, Operations string }

// Relays are all of them.
func (s *Stage) Relays() (all []Relay) {
	for _, r := range s.relays {
		all = append(all, Relay{r.name, r.operations})
	}
	return all
}

// Close ends everything; what still runs is killed.
func (s *Stage) Close(ctx context.Context) error {
	var errs []error
	for _, r := range s.relays {
		if r.process != nil {
			errs = append(errs, r.process.Kill())
		}
	}
	errs = append(errs, s.operator.close())
	if s.chain != nil {
		errs = append(errs, s.chain.Close())
	}
	if s.postgres != nil {
		errs = append(errs, s.postgres.Stop(ctx))
		// Where the server's user cannot reach our folder it keeps its data in another.
		if dir := s.postgres.Dir(); !strings.HasPrefix(dir, s.o.State) {
			errs = append(errs, os.RemoveAll(dir))
		}
	}
	s.http.CloseIdleConnections()
	return errors.Join(errs...)
}

// wait reports whether the time passed before the end of ctx.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
