// Package localnet is a Solana chain on one machine, for development and tests: a JSON-RPC server
// over HTTP with real signatures, fees, rent, blockhash expiry, commitment levels and history,
// lookup tables, SPL tokens, and the shielded pool program with real proof verification.
//
// The chain is in memory and has one validator. There is no consensus: forks are made on demand.
// The answers have Agave's shapes and error codes; comments mark the differences.
//
// One chain has several named endpoints, each with its own listener, faults and statistics. To a
// relay they are RPC providers that can be slow, rate-limited, behind or wrong. Package fault has
// the rules; the admin port sets them from outside (README.md shows how).
//
// Tests import the package and advance the slots themselves or by the clock. The
// command cmd/localnet runs a chain as a process.
package localnet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/market"
	"github.com/relaypool/relaypool/hack/localnet/poolprogram"
	"github.com/relaypool/relaypool/hack/localnet/router"
	"github.com/relaypool/relaypool/hack/localnet/rpc"
	"github.com/relaypool/relaypool/hack/localnet/token"
	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// GenesisHash is the genesis hash of every local chain. The relay accepts the
// development verifying key only on a chain with this hash.
var GenesisHash = shieldpool.DevelopmentGenesisHash

// The defaults of Options.
const (
	DefaultSlotDuration  = 200 * time.Millisecond
	DefaultConfirmAfter  = 2
	DefaultFinalizeAfter = 32
	DefaultHistory       = 200_000
)

// Options configures a Chain. VerifyingKey is required; every other field has a default.
type Options struct {
	// VerifyingKey is the pool's verifying key, in the JSON of snarkjs' verification_key.json.
	VerifyingKey []byte
	// Profile is the profile of the pool program; nil is the development profile.
	Profile *shieldpool.Profile
	// SlotDuration is the time between slots after Start; 0 is DefaultSlotDuration.
	SlotDuration time.Duration
	// ConfirmAfter and FinalizeAfter are the numbers of blocks on top of a
	// block that make it confirmed and finalized; 0 is the default.
	ConfirmAfter, FinalizeAfter uint64
	// History is the number of blocks that are kept; 0 is DefaultHistory.
	History uint64
	// RootHistory is the number of roots in the pool program's root history; 0 means the
	// profile's RootHistory. Readers of the pool need a profile with the same number.
	RootHistory int
	// Accounts are further accounts at genesis, by address. The native mint and the
	// market always exist.
	Accounts map[solana.PublicKey]bank.Account
	// Limits bounds the compute of a block; its zero value is mainnet's.
	Limits bank.BlockLimits
	// Leaders makes the network busy; nil for leaders that take what their blocks have room for.
	Leaders *bank.Leaders
	// Rent is the rate of rent at genesis; 0 is mainnet's, bank.DefaultRent.
	Rent bank.Rent
	// Seed is the seed of the random faults of the endpoints and the router.
	Seed uint64
	// Strangers is the number of transactions of strangers in a block; 0 is DefaultStrangers, and
	// a number below 0 is none. Advance puts them into the first block alone.
	Strangers int
	// Initialised makes New run the pool's Initialize and finalize it, so that the
	// pool exists at every commitment level.
	Initialised bool
	// SeedLeaves is the number of leaves that the pool of an initialised chain begins with, with the
	// blocks that appended them. Nobody has their notes, and their proofs are not valid.
	SeedLeaves uint64
	// Clock returns the time of blocks; nil is time.Now.
	Clock func() time.Time
	// Log is the chain's logger; nil discards the log.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Profile == nil {
		o.Profile = shieldpool.Development()
	}
	if o.RootHistory != 0 {
		profile := *o.Profile
		profile.RootHistory = o.RootHistory
		o.Profile = &profile
	}
	o.SlotDuration, o.ConfirmAfter = cmp.Or(o.SlotDuration, DefaultSlotDuration), cmp.Or(o.ConfirmAfter, DefaultConfirmAfter)
	o.FinalizeAfter = cmp.Or(o.FinalizeAfter, max(DefaultFinalizeAfter, o.ConfirmAfter))
	o.Strangers, o.History = cmp.Or(o.Strangers, DefaultStrangers), cmp.Or(o.History, DefaultHistory)
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Chain is a local chain. Its methods may be called concurrently.
type Chain struct {
	opts   Options
	bank   *bank.Bank
	market *market.Market
	router *router.Router
	// faucet is the wallet that has the lamports at genesis. Its key is not secret, because
	// lamports of this chain have no value. sent counts its transactions.
	faucet solana.PrivateKey
	sent   atomic.Uint32
	// slotDuration is in nanoseconds.
	slotDuration atomic.Int64
	// defaultEndpoint is the default endpoint.
	defaultEndpoint *rpc.Endpoint

	mu        sync.Mutex
	endpoints map[string]*rpc.Endpoint
	closing   []func() error
	running   sync.WaitGroup
}

// New makes a chain. The slots do not advance until Start or Advance is called.
// The error names the option that is missing or invalid.
func New(opts Options) (*Chain, error) {
	opts = opts.withDefaults()
	if len(opts.VerifyingKey) == 0 {
		return nil, errors.New("localnet options: VerifyingKey is missing, want snarkjs' verification_key.json")
	}
	if opts.RootHistory < 0 {
		return nil, fmt.Errorf("localnet options: RootHistory is %d roots, want more than 0", opts.RootHistory)
	}
	key, err := groth16.ParseKey(opts.VerifyingKey)
	if err != nil {
		return nil, fmt.Errorf("localnet options: VerifyingKey: %w", err)
	}
	program, err := poolprogram.New(opts.Profile, key)
	if err != nil {
		return nil, fmt.Errorf("make chain: %w", err)
	}
	c := &Chain{opts: opts, faucet: wellKnownKey("relaypool local chain faucet")}
	if err := c.SetSlotDuration(opts.SlotDuration); err != nil {
		return nil, fmt.Errorf("localnet options: %w", err)
	}
	if c.market, err = market.For(OutputMint()); err != nil {
		return nil, fmt.Errorf("make chain: %w", err)
	}
	if err := c.openBank(program); err != nil {
		return nil, err
	}
	c.defaultEndpoint, err = rpc.New(rpc.Options{
		Bank: c.bank, Genesis: GenesisHash, Airdrop: c.airdrop, Seed: seedOf(DefaultEndpoint, opts.Seed), Log: opts.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("make chain: %w", err)
	}
	c.endpoints = map[string]*rpc.Endpoint{DefaultEndpoint: c.defaultEndpoint}
	if c.router, err = router.New(router.Options{Ledger: c.bank, Log: opts.Log, Table: RouterTable(), Seed: opts.Seed}); err != nil {
		c.defaultEndpoint.Close()
		return nil, fmt.Errorf("make chain: %w", err)
	}
	if opts.Initialised {
		if err := c.Initialize(); err != nil {
			c.defaultEndpoint.Close()
			return nil, err
		}
		c.Finalize()
	}
	return c, nil
}

// openBank makes the chain's state, with the history of seeded leaves.
func (c *Chain) openBank(program bank.Program) error {
	seed, err := newSeed(c.opts)
	if err != nil {
		return fmt.Errorf("localnet options: SeedLeaves: %w", err)
	}
	c.bank, err = bank.New(bank.Options{
		Genesis:        GenesisHash,
		ConfirmAfter:   c.opts.ConfirmAfter,
		FinalizeAfter:  c.opts.FinalizeAfter,
		History:        c.opts.History + seed.blocks(),
		Limits:         c.opts.Limits,
		Leaders:        c.opts.Leaders,
		Rent:           c.opts.Rent,
		Clock:          c.opts.Clock,
		Programs:       append(token.Programs(), bank.SystemProgram(), bank.ComputeBudgetProgram(), program, market.Program()),
		Accounts:       merged(genesisAccounts(), marketAccounts(c.market), seed.accounts, c.opts.Accounts),
		Past:           seed.past,
		Faucet:         c.faucet.PublicKey(),
		FaucetLamports: faucetLamports,
	})
	if err != nil {
		return fmt.Errorf("make chain: %w", err)
	}
	return nil
}

// genesisAccounts are the accounts of every chain: the native mint and the feature gates that
// clients read.
func genesisAccounts() map[solana.PublicKey]bank.Account {
	return map[solana.PublicKey]bank.Account{solana.WrappedSol: token.NativeMint(), TransactionV1Gate(): FeatureAccount(true)}
}

// Start advances the chain by a slot every SlotDuration until ctx is done or the
// chain is closed. Advance may still be called concurrently.
func (c *Chain) Start(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	c.onClose(func() error { cancel(); return nil })
	c.running.Go(func() {
		next := time.Now()
		timer := time.NewTimer(0)
		defer timer.Stop()
		for {
			if next = next.Add(time.Duration(c.slotDuration.Load())); next.Before(time.Now()) {
				next = time.Now() // late slots are not made up for
			}
			timer.Reset(time.Until(next))
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
				c.Advance(1)
			}
		}
	})
}

// SetSlotDuration changes the time between slots, from the next slot on.
func (c *Chain) SetSlotDuration(d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("slot duration is %s, expected more than 0", d)
	}
	c.slotDuration.Store(int64(d))
	return nil
}

// SetRent changes the rate of rent from the next block on.
func (c *Chain) SetRent(rate bank.Rent) { c.bank.SetRent(rate) }

// RentAt is the rate of rent in a finalized slot with a block; 0 without one.
func (c *Chain) RentAt(slot uint64) (rate bank.Rent) {
	c.bank.Read(bank.Finalized, func(v bank.View) {
		if block, err := v.Block(slot); err == nil {
			rate = block.Rent
		}
	})
	return rate
}

// StartMigration begins the migration to Alpenglow with a pause of a number of slots, in
// which nothing lands and nothing becomes confirmed. See bank.Bank.StartMigration.
func (c *Chain) StartMigration(pause uint64) error { return c.bank.StartMigration(pause) }

// Advance closes the open slot and opens the next, n times.
func (c *Chain) Advance(n uint64) {
	c.landStrangers()
	c.bank.Advance(n)
}

// Skip closes the open slot and skips the next n slots, which have no block. The
// block height then grows slower than the slot, as on a real cluster.
func (c *Chain) Skip(n uint64) { c.bank.Skip(n) }

// Fork undoes the newest n blocks, confirmed blocks included, as when the cluster
// chooses another branch. See bank.Bank.Fork.
func (c *Chain) Fork(n uint64, again func(*bank.Landed) bool) ([]bank.Undone, error) {
	return c.logFork(c.bank.Fork(n, again))
}

// ForkFrom undoes every block from a slot on, as Fork does.
func (c *Chain) ForkFrom(slot uint64, again func(*bank.Landed) bool) ([]bank.Undone, error) {
	return c.logFork(c.bank.ForkFrom(slot, again))
}

func (c *Chain) logFork(undone []bank.Undone, err error) ([]bank.Undone, error) {
	if err == nil {
		c.opts.Log.Info("blocks undone by a fork", "transactions", len(undone))
	}
	return undone, err
}

// Finalize advances until every transaction that has landed is finalized.
func (c *Chain) Finalize() { c.bank.Advance(c.opts.FinalizeAfter) }

func (c *Chain) onClose(fn func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = append(c.closing, fn)
}

// Close stops the slots and all listeners, cuts all WebSocket connections, and
// waits until they have ended.
func (c *Chain) Close() error {
	c.mu.Lock()
	closing := c.closing
	c.closing = nil
	endpoints := maps.Clone(c.endpoints)
	c.mu.Unlock()
	var errs []error
	for _, fn := range closing {
		errs = append(errs, fn())
	}
	for _, e := range endpoints {
		e.Close()
	}
	c.running.Wait()
	return errors.Join(errs...)
}
