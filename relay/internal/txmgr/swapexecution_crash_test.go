package txmgr_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/market"
	"github.com/relaypool/relaypool/relay/internal/admission"
	"github.com/relaypool/relaypool/relay/internal/feepayer"
	"github.com/relaypool/relaypool/relay/internal/pgtest"
	"github.com/relaypool/relaypool/relay/internal/router"
	"github.com/relaypool/relaypool/relay/internal/store"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/swap"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// errDead is the error that a dead process gets from its calls.
var errDead = errors.New("the process is dead")

// death is the point at which a process dies: before or after the n-th call of a kind.
type death struct {
	kind  string
	n     int
	after bool
}

func (d death) String() string {
	if d.kind == "" {
		return "never"
	}
	when := "before"
	if d.after {
		when = "after"
	}
	return fmt.Sprintf("%s %s %d", when, d.kind, d.n)
}

// crashingProcess is one process that dies at a point. After its death no call is made, and the calls under way
// get no answer.
type crashingProcess struct {
	death
	mu              sync.Mutex
	calls           map[string]int
	dead            chan struct{}
	unrecordedSends []string // faults: attempts that were sent before they were recorded
}

func newCrashingProcess(d death) *crashingProcess {
	return &crashingProcess{death: d, calls: map[string]int{}, dead: make(chan struct{})}
}

func (m *crashingProcess) died() bool {
	select {
	case <-m.dead:
		return true
	default:
		return false
	}
}

// step counts a call of a kind and returns its number, and whether the process is still alive.
func (m *crashingProcess) step(kind string) (n int, alive bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.died() {
		return 0, false
	}
	m.calls[kind]++
	n = m.calls[kind]
	if !m.after && m.kind == kind && m.n == n {
		close(m.dead)
		return n, false
	}
	return n, true
}

func (m *crashingProcess) done(kind string, n int) (alive bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.died() {
		return false
	}
	if m.after && m.kind == kind && m.n == n {
		close(m.dead)
		return false
	}
	return true
}

// callUntilCrash makes a call while the process is alive, and counts it.
func callUntilCrash[T any](m *crashingProcess, kind string, call func() (T, error)) (T, error) {
	var none T
	n, alive := m.step(kind)
	if !alive {
		return none, errDead
	}
	out, err := call()
	if !m.done(kind, n) {
		return none, errDead
	}
	return out, err
}

// callUntilCrash0 is callUntilCrash for calls that return only an error.
func callUntilCrash0(m *crashingProcess, kind string, call func() error) error {
	_, err := callUntilCrash(m, kind, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

// callUncounted makes a call that is not counted.
func callUncounted[T any](m *crashingProcess, call func() (T, error)) (T, error) {
	return callUntilCrash(m, "", call)
}

// crashingStore is a process's database.
type crashingStore struct {
	submission.Store
	m *crashingProcess
}

// claimed makes a claim, and counts it if it claimed anything. A process that dies at this claim
// already has the leases in the database.
func (s *crashingStore) claimed(kind string, claim func() ([]*txmgr.Job, error)) ([]*txmgr.Job, error) {
	out, err := callUncounted(s.m, claim)
	if err != nil || len(out) == 0 {
		return out, err
	}
	return callUntilCrash(s.m, kind, func() ([]*txmgr.Job, error) { return out, nil })
}

func (s *crashingStore) Claim(ctx context.Context, worker uuid.UUID, limit int) ([]*txmgr.Job, error) {
	return s.claimed("claim", func() ([]*txmgr.Job, error) { return s.Store.Claim(ctx, worker, limit) })
}

func (s *crashingStore) ClaimSwapExecutions(ctx context.Context, worker uuid.UUID, limit int) ([]*txmgr.Job, error) {
	return s.claimed("claim of second legs", func() ([]*txmgr.Job, error) { return s.Store.ClaimSwapExecutions(ctx, worker, limit) })
}

func (s *crashingStore) ClaimLanded(ctx context.Context, worker uuid.UUID, limit int) ([]*txmgr.Job, error) {
	return s.claimed("claim of landed jobs", func() ([]*txmgr.Job, error) { return s.Store.ClaimLanded(ctx, worker, limit) })
}

func (s *crashingStore) Heartbeat(ctx context.Context, w txmgr.Worker, lease time.Duration) (bool, error) {
	return callUncounted(s.m, func() (bool, error) { return s.Store.Heartbeat(ctx, w, lease) })
}

func (s *crashingStore) FreeDeadProcesses(ctx context.Context) (int, error) {
	return callUncounted(s.m, func() (int, error) { return s.Store.FreeDeadProcesses(ctx) })
}

func (s *crashingStore) ReleaseAll(ctx context.Context, worker uuid.UUID) (int, error) {
	return callUncounted(s.m, func() (int, error) { return s.Store.ReleaseAll(ctx, worker) })
}

func (s *crashingStore) Leases(ctx context.Context, worker uuid.UUID) ([]txmgr.Lease, error) {
	return callUncounted(s.m, func() ([]txmgr.Lease, error) { return s.Store.Leases(ctx, worker) })
}

func (s *crashingStore) Release(ctx context.Context, l txmgr.Lease, delay time.Duration, hold string) error {
	return callUntilCrash0(s.m, "release", func() error { return s.Store.Release(ctx, l, delay, hold) })
}

func (s *crashingStore) RecordAttempt(ctx context.Context, l txmgr.Lease, a txmgr.Attempt) error {
	return callUntilCrash0(s.m, "record of "+string(a.Purpose), func() error { return s.Store.RecordAttempt(ctx, l, a) })
}

func (s *crashingStore) MarkAttemptsDead(ctx context.Context, l txmgr.Lease, attempts []txmgr.DeadAttempt) error {
	return callUntilCrash0(s.m, "marking of dead attempts", func() error { return s.Store.MarkAttemptsDead(ctx, l, attempts) })
}

func (s *crashingStore) UpdateSwap(ctx context.Context, l txmgr.Lease, phase submission.Phase, timeout uint64) error {
	return callUntilCrash0(s.m, "update to "+string(phase), func() error { return s.Store.UpdateSwap(ctx, l, phase, timeout) })
}

func (s *crashingStore) Complete(ctx context.Context, landings []submission.Landing) ([]txmgr.Lease, error) {
	return callUntilCrash(s.m, "completion", func() ([]txmgr.Lease, error) { return s.Store.Complete(ctx, landings) })
}

func (s *crashingStore) Finalize(ctx context.Context, landings []submission.Landing, pins []submission.ProofAPin) ([]txmgr.Lease, error) {
	return callUntilCrash(s.m, "finalization", func() ([]txmgr.Lease, error) { return s.Store.Finalize(ctx, landings, pins) })
}

// crashingChain is the RPC of a process's manager. It checks that each sent attempt is in the database.
type crashingChain struct {
	txmgr.Chain
	m  *crashingProcess
	db *pgxpool.Pool
}

func (c *crashingChain) Send(ctx context.Context, raw []byte, how onchain.Sending, minContextSlot uint64) error {
	var n int
	if err := c.db.QueryRow(context.WithoutCancel(ctx), "SELECT count(*) FROM attempts WHERE signature = $1", raw[1:65]).Scan(&n); err != nil || n != 1 {
		c.m.mu.Lock()
		c.m.unrecordedSends = append(c.m.unrecordedSends, fmt.Sprintf("%d attempts in the database have the sent signature (%v), want 1", n, err))
		c.m.mu.Unlock()
	}
	kind := "rebroadcast"
	if how.First || c.fresh(raw) {
		kind = "send"
	}
	return callUntilCrash0(c.m, kind, func() error { return c.Chain.Send(ctx, raw, how, minContextSlot) })
}

// fresh reports whether the bytes were not sent by this process before.
func (c *crashingChain) fresh(raw []byte) bool {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	key := "sent " + string(raw[1:65])
	c.m.calls[key]++
	return c.m.calls[key] == 1
}

func (c *crashingChain) Simulate(ctx context.Context, raw []byte, replaceBlockhash bool, minContextSlot uint64) (onchain.Simulation, error) {
	return callUntilCrash(c.m, "simulation", func() (onchain.Simulation, error) {
		return c.Chain.Simulate(ctx, raw, replaceBlockhash, minContextSlot)
	})
}

func (c *crashingChain) LatestBlockhash(ctx context.Context) (onchain.Blockhash, error) {
	return callUntilCrash(c.m, "blockhash", func() (onchain.Blockhash, error) { return c.Chain.LatestBlockhash(ctx) })
}

func (c *crashingChain) Statuses(ctx context.Context, sigs []solana.Signature) (out []*onchain.Status, slot uint64, err error) {
	out, err = callUntilCrash(c.m, "statuses", func() (found []*onchain.Status, err error) {
		found, slot, err = c.Chain.Statuses(ctx, sigs)
		return found, err
	})
	return out, slot, err
}

func (c *crashingChain) Search(ctx context.Context, sigs []solana.Signature) (onchain.SearchResult, error) {
	return callUntilCrash(c.m, "search", func() (onchain.SearchResult, error) { return c.Chain.Search(ctx, sigs) })
}

// crashingReads is the RPC of a process's swap executor.
type crashingReads struct {
	swap.Chain
	m *crashingProcess
}

func (c *crashingReads) Accounts(ctx context.Context, keys []solana.PublicKey, commitment onchain.Commitment, minContextSlot uint64) (out []*onchain.Account, slot uint64, err error) {
	out, err = callUntilCrash(c.m, "read of accounts", func() (found []*onchain.Account, err error) {
		found, slot, err = c.Chain.Accounts(ctx, keys, commitment, minContextSlot)
		return found, err
	})
	return out, slot, err
}

func (c *crashingReads) FindSwapEnd(ctx context.Context, s *shieldpool.Swap, first, last uint64) (*onchain.SwapEnd, error) {
	return callUntilCrash(c.m, "search for the swap's end", func() (*onchain.SwapEnd, error) { return c.Chain.FindSwapEnd(ctx, s, first, last) })
}

// crashingRouter is a process's router.
type crashingRouter struct {
	swap.Router
	m *crashingProcess
}

func (r *crashingRouter) Quote(ctx context.Context, q swap.QuoteRequest) (*swap.Quote, error) {
	return callUntilCrash(r.m, "quote", func() (*swap.Quote, error) { return r.Router.Quote(ctx, q) })
}

func (r *crashingRouter) Instructions(ctx context.Context, q *swap.Quote, user solana.PublicKey) (*swap.Instructions, error) {
	return callUntilCrash(r.m, "instructions", func() (*swap.Instructions, error) { return r.Router.Instructions(ctx, q, user) })
}

// noSwapObserver ignores all events.
type noSwapObserver struct{}

func (noSwapObserver) SwapDeferred(string)  {}
func (noSwapObserver) RouteRejected(string) {}

// swapWorld is a world with a router for swaps.
type swapWorld struct {
	*world
	router string
}

// swapSlot is the slot duration. With it a swap times out after 6 s.
const swapSlot = 30 * time.Millisecond

func newSwapWorld(t *testing.T) *swapWorld {
	t.Helper()
	s := &swapWorld{world: newWorldOf(t, swapSlot)}
	var err error
	s.router, err = s.chain.ListenRouter("127.0.0.1:0")
	must(t, err)
	return s
}

// swapRun is one swap with a database and a payer of its own, from the proof to its end.
type swapRun struct {
	*swapWorld
	db    *pgxpool.Pool
	store *store.Store
	payer *feepayer.Key
	req   submission.Request
	call  *shieldpool.Call
	swap  *shieldpool.Swap
	net   uint64
}

// newSwapRun makes a run with a new request. It can fail the test, so only the test's own goroutine
// calls it.
func (s *swapWorld) newSwapRun(gross, least uint64) *swapRun {
	s.t.Helper()
	r := &swapRun{swapWorld: s, db: pgtest.Pool(s.t), payer: s.newKey()}
	log := slog.New(slog.DiscardHandler)
	must(s.t, store.Migrate(s.t.Context(), r.db, log))
	var err error
	r.store, err = store.New(r.db)
	must(s.t, err)
	must(s.t, s.chain.Fund(r.payer.PublicKey(), sol))
	s.eventually("the payer is funded", func() bool { return s.balance(r.payer.PublicKey()) == sol })
	r.ask(gross, least)
	return r
}

// ask makes a new request for the run.
func (r *swapRun) ask(gross, least uint64) {
	s := r.swapWorld
	s.t.Helper()
	wallet := s.newKey().PublicKey()
	ata, err := shieldpool.AssociatedTokenAccount(wallet, localnet.OutputMint())
	must(s.t, err)
	r.net, _ = s.pool.Profile.Fees.Net(gross)
	r.call = &shieldpool.Call{Inputs: s.inputs(-int64(gross), solana.PublicKey{}), Destination: shieldpool.Destination{
		Recipient: wallet, Swap: &shieldpool.SwapTerms{OutputMint: localnet.OutputMint(), RecipientATA: ata, MinOutput: least},
	}}
	r.call.Inputs.ExtDataHash = shieldpool.ExtDataHash(r.call.Destination)
	r.req = submission.Request{
		Proof: s.prove(r.call.Inputs), PublicInputs: r.call.Inputs.Bytes(), Recipient: wallet.String(),
		Swap: &submission.SwapRequest{OutputMint: localnet.OutputMint().String(), RecipientATA: ata.String(), MinOutput: least},
	}
	r.swap, err = s.pool.Swap(r.call.Inputs.Nullifiers[0], *r.call.Swap)
	must(s.t, err)
}

// process is one relay process with the run's database.
type process struct {
	*admission.Admission
	handler *submission.Handler
	cancel  context.CancelFunc
	ended   chan struct{}
}

func (r *swapRun) process(m *crashingProcess) (*process, error) { return r.wire(r.wiring(m)) }

// wiring returns the parts of a process that dies with m.
func (r *swapRun) wiring(m *crashingProcess) wiring {
	return wiring{
		store: &crashingStore{r.store, m}, chain: &crashingChain{r.rpc, m, r.db}, reads: &crashingReads{r.rpc, m},
		router: func(c swap.Router) swap.Router { return &crashingRouter{c, m} },
	}
}

// wiring is the parts through which a process reaches the world.
type wiring struct {
	store  submission.Store
	chain  txmgr.Chain
	reads  swap.Chain
	router func(swap.Router) swap.Router
	// spending has no caps unless set. least is the payers' minimum balance, if above the default.
	spending txmgr.Spending
	least    uint64
}

// wire makes and runs a process.
func (r *swapRun) wire(w wiring) (*process, error) {
	if w.spending == nil {
		w.spending = unlimited{}
	}
	log := slog.New(slog.NewTextHandler(r.t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
	payers, err := feepayer.New(feepayer.Options{Keys: []txmgr.Payer{r.payer}, Balances: r.rpc, Log: log, Now: r.clock.now, MinBalance: max(w.least, sol/100)})
	if err != nil {
		return nil, err
	}
	client, err := router.New(router.Options{Name: "router", BaseURL: r.router, HTTP: router.NewHTTPClient(), Now: r.clock.now, Rand: rand.Float64, Log: log, Timeout: time.Second})
	if err != nil {
		return nil, err
	}
	routers, err := router.NewRouters(client)
	if err != nil {
		return nil, err
	}
	executor, err := swap.New(swap.Options{
		Chain: w.reads, Router: w.router(routers), Pool: r.pool, RouterProgram: market.ProgramID, Payers: payers,
		SlippageBps: 50, Observer: noSwapObserver{}, Log: log, Now: r.clock.now, SlotDuration: nominalSlot,
	})
	if err != nil {
		return nil, err
	}
	proofA, err := submission.NewProofAPolicy("auto", w.store, r.key.Hash(), r.clock.now)
	if err != nil {
		return nil, err
	}
	observer := &counts{n: map[string]int{}}
	p := &process{ended: make(chan struct{})}
	p.handler, err = submission.New(submission.Options{
		Store: w.store, Chain: w.chain, State: r.state, Pool: r.pool, Payers: payers, Spending: w.spending, Leaves: noLeaves{}, ProofA: proofA,
		Observer: observer, Log: log, Now: r.clock.now, Worker: uuid.New(), Concurrency: 4, Rent: chainRent, SlotDuration: nominalSlot,
		Price:  txmgr.PriceRule{Cap: 1000, Percentile: 50},
		Timing: txmgr.Timing{Lease: 600 * time.Millisecond, Poll: swapSlot, Sweep: 5 * swapSlot / 2, Backoff: swapSlot, BackoffCap: 5 * swapSlot, Hold: 5 * swapSlot},
	})
	if err == nil {
		err = executor.Serve(p.handler, 4)
	}
	if err != nil {
		return nil, err
	}
	p.Admission, err = admission.New(admission.Options{
		Store: w.store, Pool: r.pool, State: r.state, Payers: payers, Spending: w.spending, Key: r.key, ProofA: proofA, Observer: observer,
		Submissions: p.handler, Ready: always, Now: r.clock.now, NewID: uuid.New, CallTimeout: time.Minute,
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go func() {
		defer close(p.ended)
		p.handler.Run(ctx)
		client.Close()
	}()
	return p, nil
}

func (p *process) stop() {
	p.cancel()
	<-p.ended
}

// await calls ok until it returns true or an error.
func await(what string, ok func() (bool, error)) error {
	for deadline := time.Now().Add(testTimeout); ; time.Sleep(swapSlot) {
		switch done, err := ok(); {
		case err != nil:
			return fmt.Errorf("%s: %w", what, err)
		case done:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("not within %s: %s", testTimeout, what)
		}
	}
}

// ended returns the swap once both of its legs are final; nil before.
func (r *swapRun) ended(ctx context.Context, id uuid.UUID) (*submission.Submission, error) {
	s, err := r.store.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if s.State == submission.Failed {
		return nil, fmt.Errorf("the first leg failed: %w", s.Failure)
	}
	if !s.Finalized || s.Swap == nil || !s.Swap.Finalized {
		return nil, nil //nolint:nilnil // nil is "not yet"
	}
	return s, nil
}

// runWithCrash runs the swap on a first process until it dies or the swap ends. If it died, another process
// finishes the swap.
func (r *swapRun) runWithCrash(ctx context.Context, d death) (first *crashingProcess, s *submission.Submission, err error) {
	first = newCrashingProcess(d)
	p, err := r.process(first)
	if err != nil {
		return first, nil, err
	}
	accepted, err := p.Submit(ctx, r.req)
	if err != nil {
		p.stop()
		return first, nil, fmt.Errorf("submit: %w", err)
	}
	end := func() (bool, error) {
		s, err = r.ended(ctx, accepted.ID)
		return s != nil, err
	}
	err = await("the process dies or finishes", func() (bool, error) {
		if first.died() {
			return true, nil
		}
		return end()
	})
	p.stop()
	if err != nil || s != nil && !first.died() {
		return first, s, err
	}
	newOwner := newCrashingProcess(death{})
	if p, err = r.process(newOwner); err != nil {
		return first, nil, err
	}
	err = await("the new owner finishes", end)
	p.stop()
	first.unrecordedSends = append(first.unrecordedSends, newOwner.unrecordedSends...)
	return first, s, err
}

// check checks the reported end against the chain, and the payer's spending.
func (r *swapRun) check(ctx context.Context, s *submission.Submission, least uint64) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	keys := []solana.PublicKey{r.swap.State, r.call.Swap.RecipientATA, r.call.Recipient, r.payer.PublicKey(), r.swap.WSOL, r.swap.Output}
	accounts, _, err := r.rpc.Accounts(ctx, keys, onchain.Confirmed, 0)
	if err != nil {
		return []string{err.Error()}
	}
	var tokens, lamports uint64
	if a := accounts[1]; a != nil {
		held, err := shieldpool.ParseTokenAccount(a.Data)
		if err != nil {
			return []string{err.Error()}
		}
		tokens = held.Amount
	}
	if a := accounts[2]; a != nil {
		lamports = a.Lamports
	}
	if accounts[0] != nil {
		fault("the swap state account still exists")
	}
	swapEnd, err := r.rpc.FindSwapEnd(ctx, r.swap, 0, math.MaxUint64)
	if err != nil || swapEnd == nil {
		return append(faults, fmt.Sprintf("the chain has no end of the swap: %v", err))
	}
	if s.Swap.Signature == nil || *s.Swap.Signature != swapEnd.Signature || string(s.Swap.Phase) != string(swapEnd.How) {
		fault("the swap is reported as %s with signature %v; on the chain it is %s with %s", s.Swap.Phase, s.Swap.Signature, swapEnd.How, swapEnd.Signature)
	}
	const notes, state, account = 2 * 650_240, 1_468_120, 1_488_440
	var rent uint64
	switch s.Swap.Phase {
	case submission.PhaseExecuted:
		if tokens < least || lamports != 0 {
			fault("the recipient has %d tokens and %d lamports, want at least %d tokens and no lamports", tokens, lamports, least)
		}
		rent = notes + account
	case submission.PhaseRefunded:
		if tokens != 0 || lamports != r.net+state {
			fault("the recipient has %d tokens and %d lamports, want a refund of %d lamports", tokens, lamports, r.net+state)
		}
		rent = notes + state
		for _, i := range []int{1, 4, 5} {
			if accounts[i] != nil {
				rent += account
			}
		}
	default:
		fault("the swap ended as %s, want executed or refunded", s.Swap.Phase)
	}
	var fees uint64
	infos, err := r.rpc.SignaturesFor(ctx, r.payer.PublicKey(), onchain.Confirmed, solana.Signature{}, solana.Signature{}, 0)
	if err != nil {
		return append(faults, err.Error())
	}
	for _, info := range infos {
		paid, err := r.rpc.Payment(ctx, info.Signature, r.payer.PublicKey())
		if err != nil || paid == nil {
			return append(faults, fmt.Sprintf("a payment cannot be read: %v", err))
		}
		if paid.FeePayer.Equals(r.payer.PublicKey()) {
			fees += paid.Fee
		}
	}
	spent := sol - accounts[3].Lamports
	if spent != fees+rent {
		fault("the payer spent %d lamports, want %d for fees and %d for rent", spent, fees, rent)
	}
	return append(faults, r.checkRows(ctx, spent)...)
}

// checkRows checks the rows in the database for consistency, and the counted spending.
func (r *swapRun) checkRows(ctx context.Context, spent uint64) (faults []string) {
	for query, want := range map[string]int64{
		"SELECT COALESCE(sum(lamports), 0)::bigint FROM spend_buckets":                                               int64(spent),
		"SELECT count(*) FROM submissions WHERE state <> 'completed' OR NOT finalized":                               0,
		"SELECT count(*) FROM submissions":                                                                           2,
		"SELECT count(*) FROM swaps WHERE NOT ended":                                                                 0,
		"SELECT count(*) FROM submissions WHERE lease_owner IS NOT NULL":                                             0,
		"SELECT count(*) FROM attempts a WHERE purpose = 'transact' AND NOT dead":                                    1,
		"SELECT count(*) FROM attempts WHERE NOT dead AND purpose IN ('execute', 'refund')":                          1,
		"SELECT count(*) FROM attempts a JOIN submissions s ON s.id = a.submission_id AND s.signature = a.signature": 2,
	} {
		var got int64
		if err := r.db.QueryRow(ctx, query).Scan(&got); err != nil || got != want {
			faults = append(faults, fmt.Sprintf("%s returns %d (%v), want %d", query, got, err, want))
		}
	}
	return faults
}

// runCrashes runs a swap once for each death, with atOnce swaps in parallel.
func (s *swapWorld) runCrashes(atOnce int, gross, least uint64, want submission.Phase, deaths []death) {
	s.t.Helper()
	running := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	var mu sync.Mutex
	ends := map[submission.Phase]int{}
	survived := 0
	for _, d := range deaths {
		running <- struct{}{}
		r := s.newSwapRun(gross, least)
		wg.Go(func() {
			defer func() { r.db.Close(); <-running }()
			began := time.Now()
			first, end, err := r.runWithCrash(s.t.Context(), d)
			if err != nil {
				s.t.Errorf("%s: %v", d, err)
				return
			}
			for _, fault := range append(r.check(s.t.Context(), end, least), first.unrecordedSends...) {
				s.t.Errorf("%s: %s", d, fault)
			}
			mu.Lock()
			defer mu.Unlock()
			ends[end.Swap.Phase]++
			if !first.died() {
				survived++
			}
			s.t.Logf("%s: %s after %s, process died: %v", d, end.Swap.Phase, time.Since(began).Round(time.Millisecond), first.died())
		})
	}
	wg.Wait()
	s.t.Logf("%d runs, of which %d processes did not reach their death: %v", len(deaths), survived, ends)
	if ends[want] < len(deaths)/2 {
		s.t.Errorf("%d of %d swaps were %s, want at least half, or the test does not show what it should", ends[want], len(deaths), want)
	}
	if survived > len(deaths)/4 {
		s.t.Errorf("%d of %d processes did not reach their death, want at most a quarter", survived, len(deaths))
	}
}

// crashPoints returns the points before and after each counted call, for at most limit calls of
// each kind.
func crashPoints(calls map[string]int, limit int) (out []death) {
	for _, kind := range slices.Sorted(maps.Keys(calls)) {
		if kind == "" || strings.HasPrefix(kind, "sent ") {
			continue
		}
		for n := 1; n <= min(calls[kind], limit); n++ {
			out = append(out, death{kind, n, false}, death{kind, n, true})
		}
	}
	return out
}

// runWithoutCrash runs a swap on a process that does not die, and returns the counts of its calls.
func (s *swapWorld) runWithoutCrash(gross, least uint64, want submission.Phase) map[string]int {
	s.t.Helper()
	r := s.newSwapRun(gross, least)
	life, end, err := r.runWithCrash(s.t.Context(), death{})
	must(s.t, err)
	for _, fault := range append(r.check(s.t.Context(), end, least), life.unrecordedSends...) {
		s.t.Error(fault)
	}
	if end.Swap.Phase != want {
		s.t.Fatalf("without a death the swap is %s, want %s", end.Swap.Phase, want)
	}
	return life.calls
}

const swapGross = sol / 20

// TestExecutedSwapSurvivesProcessDeathAtAnyCall: another process finishes the swap.
func TestExecutedSwapSurvivesProcessDeathAtAnyCall(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs a swap for each call that it makes")
	}
	s := newSwapWorld(t)
	net, _ := s.pool.Profile.Fees.Net(swapGross)
	state, err := s.chain.MarketState()
	must(t, err)
	least := state.Output(net) / 100 * 98
	calls := s.runWithoutCrash(swapGross, least, submission.PhaseExecuted)
	s.runCrashes(10, swapGross, least, submission.PhaseExecuted, crashPoints(calls, 4))
}

// TestRefundedSwapSurvivesProcessDeathAtAnyCall: another process finishes the swap.
func TestRefundedSwapSurvivesProcessDeathAtAnyCall(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs a swap for each call that it makes")
	}
	s := newSwapWorld(t)
	const least = 1 << 60
	calls := s.runWithoutCrash(swapGross, least, submission.PhaseRefunded)
	s.runCrashes(12, swapGross, least, submission.PhaseRefunded, crashPoints(calls, 3))
}
