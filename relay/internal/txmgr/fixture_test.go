package txmgr_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/trapdoor"
	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/internal/admission"
	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/internal/commitments"
	"github.com/relaypool/relaypool/relay/internal/feepayer"
	"github.com/relaypool/relaypool/relay/internal/pgtest"
	"github.com/relaypool/relaypool/relay/internal/store"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	slot        = 20 * time.Millisecond
	sol         = 1_000_000_000
	lease       = time.Second
	testTimeout = 2 * time.Minute
)

// world is a pool on a local chain and a database, for relays to run on. Proofs are
// made with a key whose secrets are known, so that any statement can be proven; their
// verification is real.
type world struct {
	t       testing.TB
	chain   *localnet.Chain
	rpc     *chain.Endpoints
	pool    *shieldpool.Pool
	state   *chain.PoolReader
	leaves  submission.LeafIndex
	store   *store.Store
	secrets *trapdoor.Key
	key     *groth16.Key
	payer   *feepayer.Key
	clock   *clock
	nonce   atomic.Uint64
}

// clock is the machine's clock plus an offset.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

func newWorld(t testing.TB) *world {
	t.Helper()
	return newWorldOf(t, slot)
}

// newWorldOf makes a world with the slot duration, whose chain options a test may change.
func newWorldOf(t testing.TB, slot time.Duration, change ...func(*localnet.Options)) *world {
	t.Helper()
	w := &world{t: t, secrets: trapdoor.New(t.Name(), shieldpool.SignalCount), clock: new(clock), leaves: noLeaves{}}
	raw, err := w.secrets.VerifyingKey()
	must(t, err)
	w.key, err = groth16.ParseKey(raw)
	must(t, err)
	o := localnet.Options{VerifyingKey: raw, SlotDuration: slot, Initialised: true}
	for _, c := range change {
		c(&o)
	}
	w.chain, err = localnet.New(o)
	must(t, err)
	t.Cleanup(func() { must(t, w.chain.Close()) })
	url, err := w.chain.Listen("127.0.0.1:0")
	must(t, err)
	w.chain.Start(t.Context())
	w.rpc = w.endpoints(chain.Endpoint{Name: "local", URL: url, Roles: []chain.Role{chain.RoleRead, chain.RoleSubmit, chain.RoleArchive}})
	profile := shieldpool.Development()
	w.pool, err = profile.Pool(profile.Mints[0])
	must(t, err)
	w.state = w.newState(w.rpc)
	db := pgtest.Pool(t)
	must(t, store.Migrate(t.Context(), db, slog.New(slog.DiscardHandler)))
	w.store, err = store.New(db)
	must(t, err)
	w.payer = w.newKey()
	must(t, w.chain.Fund(w.payer.PublicKey(), sol))
	w.deposit(10 * sol)
	return w
}

// endpoints is a client of the chain.
func (w *world) endpoints(all ...chain.Endpoint) *chain.Endpoints {
	w.t.Helper()
	e, err := chain.NewEndpoints(chain.EndpointsOptions{
		Endpoints: all, Now: time.Now, Rand: rand.Float64, Log: slog.New(slog.DiscardHandler),
	})
	must(w.t, err)
	w.t.Cleanup(e.Close)
	return e
}

func (w *world) newState(rpc *chain.Endpoints) *chain.PoolReader {
	w.t.Helper()
	reader, err := chain.NewPool(chain.PoolOptions{Accounts: rpc, Pool: w.pool, Now: time.Now, Corroborated: rpc.Corroborated, History: rpc.FindCreation, AllEndpoints: rpc.AccountAtAll, MinInterval: slot})
	must(w.t, err)
	return reader
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) newKey() *feepayer.Key {
	key, err := solana.NewRandomPrivateKey()
	must(w.t, err)
	k, err := feepayer.Parse([]byte(key.String()))
	must(w.t, err)
	return k
}

// inputs returns public inputs over the newest root with new notes.
func (w *world) inputs(amount int64, recipient solana.PublicKey) *shieldpool.PublicInputs {
	w.t.Helper()
	snap, err := w.state.Tree(w.t.Context(), 0)
	must(w.t, err)
	n := w.nonce.Add(1)
	low, high := byte(n), byte(n>>8)
	return &shieldpool.PublicInputs{
		Root: snap.Tree.Root, PublicAmount: amount, MintAddress: w.pool.Mint.Field,
		ExtDataHash: shieldpool.ExtDataHash(shieldpool.Destination{Recipient: recipient}),
		Nullifiers:  [2][32]byte{{29: high, 30: low, 31: 1}, {29: high, 30: low, 31: 2}},
		Commitments: [2][32]byte{{29: high, 30: low, 31: 3}, {29: high, 30: low, 31: 4}},
	}
}

func (w *world) prove(in *shieldpool.PublicInputs) []byte {
	w.t.Helper()
	signals := in.Signals()
	proof, err := w.secrets.Prove(signals[:], w.nonce.Load())
	must(w.t, err)
	return proof
}

// deposit puts lamports into the pool, signed by a depositor's own wallet.
func (w *world) deposit(lamports int64) {
	w.t.Helper()
	wallet := w.newKey()
	must(w.t, w.chain.Fund(wallet.PublicKey(), uint64(lamports)+sol))
	in := w.inputs(lamports, solana.PublicKey{})
	w.land(wallet, &shieldpool.Call{Proof: w.prove(in), Inputs: in})
}

// land sends a transaction without the relay and waits until it is confirmed.
func (w *world) land(wallet *feepayer.Key, c *shieldpool.Call) {
	w.t.Helper()
	ctx := w.t.Context()
	hash, err := w.rpc.LatestBlockhash(ctx)
	must(w.t, err)
	tx, err := w.pool.Transaction(wallet.PublicKey(), c, shieldpool.Compute{Limit: 400_000}, hash.Hash, nil)
	must(w.t, err)
	message, err := tx.Message.MarshalBinary()
	must(w.t, err)
	sig, err := wallet.Sign(context.Background(), message)
	must(w.t, err)
	tx.Signatures = []solana.Signature{sig}
	raw, err := tx.MarshalBinary()
	must(w.t, err)
	must(w.t, w.rpc.Send(ctx, raw, onchain.Sending{}, 0))
	w.eventually("the transaction is confirmed", func() bool {
		st, _, err := w.rpc.Statuses(ctx, []solana.Signature{sig})
		must(w.t, err)
		if st[0] != nil && st[0].Err != nil {
			w.t.Fatalf("the transaction failed: %v", st[0].Err)
		}
		return st[0] != nil && st[0].Confirmation.AtLeast(onchain.Confirmed)
	})
}

func (w *world) eventually(what string, ok func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(testTimeout); !ok(); time.Sleep(slot / 2) {
		if time.Now().After(deadline) {
			w.t.Fatalf("not within %s: %s", testTimeout, what)
		}
	}
}

// withdrawal returns a request to pay a new wallet, and the wallet.
func (w *world) withdrawal(lamports int64) (submission.Request, solana.PublicKey) {
	w.t.Helper()
	to := w.newKey().PublicKey()
	in := w.inputs(-lamports, to)
	return submission.Request{Proof: w.prove(in), PublicInputs: in.Bytes(), Recipient: to.String(), Notes: [][]byte{{1}}}, to
}

// noLeaves is an index that has read nothing.
type noLeaves struct{}

func (noLeaves) FindLanded(context.Context, []uint64, [][32]byte) (map[[32]byte]uint64, error) {
	return nil, nil
}

func (noLeaves) Find(context.Context, [][32]byte) (map[[32]byte]uint64, error) {
	return nil, nil
}

func (noLeaves) Since([32]byte) (r commitments.Recent, ok bool) { return r, false }

func (noLeaves) IsProcessed(context.Context, [32]byte) bool { return false }

// counts counts the events that a relay reports to its observer.
type counts struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *counts) add(s string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[s]++
}

func (c *counts) count(s string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[s]
}

func (c *counts) Stage(string, time.Duration)         {}
func (c *counts) Outcome(_ shieldpool.Kind, o string) { c.add(o) }
func (c *counts) Attempt(e string)                    { c.add(e) }
func (c *counts) Lease(e string, _ int)               { c.add("lease " + e) }
func (c *counts) Poll(int, bool)                      {}
func (c *counts) LaneExpired(lane string)             { c.add("expired on lane " + lane) }

func (c *counts) LandedAfter(_ string, slots, _ uint64) {
	c.add(fmt.Sprintf("landed within a life: %t", slots > 0 && slots <= 150))
}

// relay is one relay process of the world.
type relay struct {
	*admission.Admission
	*txmgr.Manager
	handler *submission.Handler
	*submission.Reader
	*counts
}

func always() error { return nil }

// unlimited caps nothing.
type unlimited struct{}

func (unlimited) Ready(context.Context, bool, uint64) error { return nil }
func (unlimited) Allow(context.Context, bool, uint64) (func(bool), error) {
	return func(bool) {}, nil
}

// parts are the parts of a relay that a test may change.
type parts struct {
	chain             func(txmgr.Chain) txmgr.Chain
	store             func(submission.Store) submission.Store
	state             submission.PoolState
	spending          txmgr.Spending
	payer             txmgr.Payer   // in place of the world's own
	payers            []txmgr.Payer // in addition to that
	timing            txmgr.Timing
	concurrency       int
	formats           shieldpool.Formats
	price             txmgr.PriceRule
	slot              func() time.Duration
	simulationTimeout time.Duration
	// maxEarlyFees is in lamports.
	maxEarlyFees uint64
}

// relay makes a relay; wrap may wrap its chain, unless it is nil.
func (w *world) relay(wrap func(txmgr.Chain) txmgr.Chain) *relay {
	w.t.Helper()
	return w.assemble(parts{chain: wrap})
}

func (w *world) assemble(p parts) *relay {
	w.t.Helper()
	log := slog.New(slog.NewTextHandler(w.t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	if _, measures := w.t.(*testing.B); measures {
		log = slog.New(slog.DiscardHandler)
	}
	if p.payer == nil {
		p.payer = w.payer
	}
	payers, err := feepayer.New(feepayer.Options{Keys: append([]txmgr.Payer{p.payer}, p.payers...), Balances: w.rpc, Log: log, Now: time.Now, MinBalance: sol / 100})
	must(w.t, err)
	if p.chain == nil {
		p.chain = func(c txmgr.Chain) txmgr.Chain { return c }
	}
	if p.store == nil {
		p.store = func(s submission.Store) submission.Store { return s }
	}
	if p.state == nil {
		p.state = w.state
	}
	if p.spending == nil {
		p.spending = unlimited{}
	}
	if p.timing == (txmgr.Timing{}) {
		p.timing = txmgr.Timing{Lease: lease, Poll: slot, Sweep: 5 * slot / 2, Backoff: slot, BackoffCap: 5 * slot, Hold: 5 * slot}
	}
	if p.price == (txmgr.PriceRule{}) {
		p.price = txmgr.PriceRule{Cap: 1000, Percentile: 50}
	}
	if p.slot == nil {
		p.slot = nominalSlot
	}
	if p.concurrency == 0 {
		p.concurrency = 64
	}
	db := p.store(w.store)
	proofA, err := submission.NewProofAPolicy("auto", db, w.key.Hash(), w.clock.now)
	must(w.t, err)
	r := &relay{counts: &counts{n: map[string]int{}}}
	r.handler, err = submission.New(submission.Options{
		Store: db, Chain: p.chain(w.rpc), State: p.state, Pool: w.pool, Payers: payers, Spending: p.spending, Leaves: w.leaves, ProofA: proofA,
		Observer: r.counts, Log: log, Now: w.clock.now, Worker: uuid.New(), Concurrency: p.concurrency, Rent: chainRent, SlotDuration: p.slot,
		Price: p.price, MaxEarlyFees: p.maxEarlyFees, Timing: p.timing, Formats: p.formats,
	})
	must(w.t, err)
	r.Manager = r.handler.Manager
	r.Admission, err = admission.New(admission.Options{
		Store: db, Pool: w.pool, State: p.state, Payers: payers, Spending: p.spending, Key: w.key, ProofA: proofA, Observer: r.counts,
		Submissions: r.handler, Ready: always, Now: w.clock.now, NewID: uuid.New, CallTimeout: time.Minute, SimulationTimeout: p.simulationTimeout,
	})
	must(w.t, err)
	r.Reader, err = submission.NewReader(db, w.leaves, log)
	must(w.t, err)
	return r
}

// nominalSlot is far above the slots of these chains, so that attempts are searched no earlier
// than on mainnet.
func nominalSlot() time.Duration { return onchain.NominalSlot }

// chainRent is the local chain's rate of rent.
func chainRent() shieldpool.Rent { return shieldpool.Rent(bank.DefaultRent) }

// run runs the relay until stop is called, which waits until the relay has released its leases.
func (w *world) run(r *relay) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.handler.Run(ctx)
	}()
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); <-done }) }
	w.t.Cleanup(stop)
	return stop
}

func (w *world) get(id uuid.UUID) *submission.Submission {
	w.t.Helper()
	s, err := w.store.Get(w.t.Context(), id)
	must(w.t, err)
	return s
}

func (w *world) balance(key solana.PublicKey) uint64 {
	w.t.Helper()
	lamports, _, err := w.rpc.Balance(w.t.Context(), key, 0)
	must(w.t, err)
	return lamports
}

func (w *world) submit(r *relay, req submission.Request) *submission.Submission {
	w.t.Helper()
	s, err := r.Submit(w.t.Context(), req)
	must(w.t, err)
	return s
}

func (w *world) done(id uuid.UUID) *submission.Submission {
	w.t.Helper()
	w.eventually("the submission is done", func() bool { return w.get(id).Done() })
	return w.get(id)
}

func wantCode(t testing.TB, err error, code refusal.Code) *refusal.Refusal {
	t.Helper()
	r, ok := refusal.As(err)
	if !ok || r.Code != code {
		t.Fatalf("error is %v, want a refusal with code %s", err, code)
	}
	return r
}
