package arena

import (
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/hack/drill/schedule"
	"github.com/relaypool/relaypool/hack/drill/witness"
	"github.com/relaypool/relaypool/hack/freeport"
	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/market"
	"github.com/relaypool/relaypool/hack/process"
	"github.com/relaypool/relaypool/hack/wallet/simulator"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// transactionLamports are about what a transaction costs its payer.
	transactionLamports = 1_800_000
	// minimumLamports are what a payer has to keep, by the relay's default.
	minimumLamports = 50_000_000
	// fundingLamports come when payers are funded: enough for thousands of
	// transactions.
	fundingLamports = 100 * solana.LAMPORTS_PER_SOL
	// poolLamports are what withdrawals draw on.
	poolLamports = 1_000_000 * solana.LAMPORTS_PER_SOL
	// unreachable is the share of swaps whose minimum no market reaches.
	unreachable = 0.2
	// databaseConnections of each relay.
	databaseConnections = 24
)

// setUp builds and starts everything but the relays' processes.
func (a *arena) setUp(ctx context.Context) error {
	a.began = time.Now()
	program := filepath.Join(a.o.State, "relay")
	a.say("building the relay")
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", program, "./relay/cmd/relay")
	build.Dir = a.o.Root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the relay: %w\n%s", err, out)
	}
	key := filepath.Join(a.o.Root, "hack", "circuit", "verification_key.json")
	text, err := os.ReadFile(filepath.Clean(key))
	if err != nil {
		return fmt.Errorf("read the development key: %w", err)
	}
	prover, err := simulator.New(text, simulator.DevelopmentSeed)
	if err != nil {
		return err
	}
	if err := a.makePayers(); err != nil {
		return err
	}
	if err := a.startChain(ctx, text); err != nil {
		return err
	}
	a.say("starting Postgres")
	if a.database, err = startDatabase(ctx, filepath.Join(a.o.State, "postgres"), a.o.Progress); err != nil {
		return err
	}
	if err := os.WriteFile(a.file("database-url"), []byte(a.database.url+"\n"), 0o600); err != nil {
		return fmt.Errorf("write the database's URL: %w", err)
	}
	a.say("starting %d relays", a.o.Relays)
	if err := a.defineRelays(ctx, program, key); err != nil {
		return err
	}
	return a.makeLoad(prover)
}

func (a *arena) file(name string) string { return filepath.Join(a.o.State, name) }

// makePayers derives the fee payers' keys from the seed and writes them.
func (a *arena) makePayers() error {
	if err := os.MkdirAll(a.file("payers"), 0o750); err != nil {
		return fmt.Errorf("make the fee payers' folder: %w", err)
	}
	r := rand.New(rand.NewPCG(a.o.Seed, 0x7061796572)) //nolint:gosec // keys of a local chain that is worth nothing
	for i := range a.o.Payers {
		var seed []byte
		for len(seed) < ed25519.SeedSize {
			seed = binary.LittleEndian.AppendUint64(seed, r.Uint64())
		}
		key := ed25519.NewKeyFromSeed(seed)
		numbers := make([]int, len(key))
		for n, b := range key {
			numbers[n] = int(b)
		}
		text, err := json.Marshal(numbers)
		if err != nil {
			return fmt.Errorf("encode a fee payer's key: %w", err)
		}
		if err := os.WriteFile(a.payerFile(i), text, 0o600); err != nil {
			return fmt.Errorf("write a fee payer's key: %w", err)
		}
		a.payers = append(a.payers, solana.PrivateKey(key))
	}
	return nil
}

func (a *arena) payerFile(i int) string {
	return filepath.Join(a.file("payers"), fmt.Sprintf("payer-%d.json", i+1))
}

// startChain makes the chain with its pool and funds everybody.
func (a *arena) startChain(ctx context.Context, key []byte) error {
	chain, err := localnet.New(localnet.Options{VerifyingKey: key, SlotDuration: a.o.Slot, FinalizeAfter: a.o.FinalizeAfter, Seed: a.o.Seed, Initialised: true})
	if err != nil {
		return err
	}
	if a.network, err = newNetwork(chain, a.o.Endpoints, a.payers[0].PublicKey(), a.o.Seed); err != nil {
		return errors.Join(err, chain.Close())
	}
	profile := shieldpool.Development()
	if a.pool, err = profile.Pool(profile.Mints[0]); err != nil {
		return err
	}
	if err := chain.Fund(a.pool.Address, poolLamports); err != nil {
		return err
	}
	a.eyes = witness.NewChain(rpc.New(a.network.honest), a.pool)
	for i, payer := range a.payers {
		a.eyes.Payers[payer.PublicKey()] = true
		if err := chain.Fund(payer.PublicKey(), a.firstFunds(i)); err != nil {
			return err
		}
	}
	if err := chain.Fund(stranger().PublicKey(), fundingLamports); err != nil {
		return err
	}
	if err := chain.Fund(stranger().PublicKey(), fundingLamports); err != nil {
		return err
	}
	chain.Finalize()
	if err := a.openVault(ctx); err != nil {
		return err
	}
	for _, payer := range a.payers {
		if a.opening[payer.PublicKey()], err = a.eyes.Balance(ctx, payer.PublicKey()); err != nil {
			return err
		}
	}
	chain.Start(context.WithoutCancel(ctx))
	return nil
}

// firstFunds are a payer's at the start: such that the first one is dry before
// the schedule funds it, and the others long before that.
func (a *arena) firstFunds(i int) uint64 {
	expected := a.o.Rate * a.o.Duration.Seconds() * schedule.FundedFrom
	share := 0.8
	if i > 0 {
		share = 0.15 / float64(i)
	}
	return minimumLamports + uint64(expected*share*(transactionLamports+a.o.Swaps*swapLamports))
}

// defineRelays gives each relay its ports, its endpoint and its arguments.
func (a *arena) defineRelays(ctx context.Context, program, key string) error {
	addresses, err := freeport.Find(ctx, 2*a.o.Relays)
	if err != nil {
		return err
	}
	if err := a.writeEndpoints(); err != nil {
		return err
	}
	compliance, err := compliancePublicKey(ctx, program, a.file("compliance-private.key"))
	if err != nil {
		return err
	}
	for i := range a.o.Relays {
		api, operations := addresses[2*i], addresses[2*i+1]
		a.relays = append(a.relays, &relay{
			index: i, program: program, log: a.file(fmt.Sprintf("relay-%d.log", i+1)),
			url: "http://" + api, operations: "http://" + operations,
			wanted: true, changed: make(chan struct{}, 1), exits: a.exited,
			arguments: []string{
				"serve", "--listen=" + api, "--operations-listen=" + operations,
				"--database-url-file=" + a.file("database-url"), fmt.Sprintf("--database-max-connections=%d", databaseConnections),
				"--rpc-endpoints-file=" + a.file("endpoints.json"),
				"--genesis-hash=" + shieldpool.DevelopmentGenesisHash.String(), "--profile=" + shieldpool.Development().Name,
				"--verifying-key=" + key, "--fee-payer-key-file=" + a.file("payers"),
				"--compliance-public-key=" + compliance, "--rate-limit=0", "--spend-cap-transfers-day=0",
				"--router-url=" + a.network.router, "--router-program=" + market.ProgramID.String(),
				// The more is logged, the more could be shown that must not be.
				"--log-format=json", "--log-level=debug",
			},
		})
	}
	return nil
}

// writeEndpoints tells the relays of the faulty endpoints, both with every role.
func (a *arena) writeEndpoints() error {
	type endpoint struct {
		Name string `json:"name"`
		URL  string `json:"url"`
	}
	var endpoints []endpoint
	for i, name := range a.network.names {
		endpoints = append(endpoints, endpoint{name, a.network.urls[i]})
	}
	text, err := json.Marshal(endpoints)
	if err != nil {
		return fmt.Errorf("encode the endpoints: %w", err)
	}
	if err := os.WriteFile(a.file("endpoints.json"), text, 0o600); err != nil {
		return fmt.Errorf("write the endpoints: %w", err)
	}
	return nil
}

func compliancePublicKey(ctx context.Context, program, file string) (string, error) {
	command := exec.CommandContext(ctx, program, "compliance", "keygen", file)
	command.Env = process.OwnEnvironment(os.Environ())
	public, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("make a compliance key: %w", err)
	}
	return strings.TrimSpace(string(public)), nil
}

func (a *arena) makeLoad(prover *simulator.Simulator) error {
	var urls []string
	for _, r := range a.relays {
		urls = append(urls, r.url)
	}
	var err error
	a.load, err = load.New(load.Options{
		Relays: urls, Simulator: prover, Mint: a.pool.Mint, Seed: a.o.Seed, HTTP: a.http, Now: time.Now,
		Rate: a.o.Rate, InFlight: a.o.InFlight, Withdrawals: 0.6, Rivals: 0.04, Strays: 0.03, Direct: a.direct,
		Swaps: a.o.Swaps, Unreachable: unreachable, Market: &load.Market{Pool: a.pool, Mint: localnet.OutputMint(), Quote: a.network.quote},
		PollMin: a.o.PollMin, PollMax: a.o.PollMax, PauseMax: a.o.PauseMax,
	})
	return err
}

// kill ends the relays that still run: the drill failed before it came to stop
// them.
func (a *arena) kill() error {
	var errs []error
	for _, r := range a.relays {
		errs = append(errs, r.kill())
	}
	return errors.Join(errs...)
}

// close ends chain and database.
func (a *arena) close(ctx context.Context) error {
	var errs []error
	if a.network != nil {
		errs = append(errs, a.network.chain.Close())
	}
	if a.database != nil {
		errs = append(errs, a.database.stop(ctx))
		// Where the server's user cannot reach our folder it keeps its data in another.
		if dir := a.database.server.Dir(); !strings.HasPrefix(dir, a.o.State) {
			errs = append(errs, os.RemoveAll(dir))
		}
	}
	return errors.Join(errs...)
}
