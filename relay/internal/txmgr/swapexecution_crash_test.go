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

// death is when a process dies: before or after the n-th call of a kind.
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

// mortal is one process's life. After its death none of its calls is made, and no answer to those
// under way arrives.
type mortal struct {
	death
	mu     sync.Mutex
	calls  map[string]int
	dead   chan struct{}
	unmade []string // attempts that were sent before they were recorded
}

func newMortal(d death) *mortal {
	return &mortal{death: d, calls: map[string]int{}, dead: make(chan struct{})}
}

func (m *mortal) died() bool {
	select {
	case <-m.dead:
		return true
	default:
		return false
	}
}

// step counts a call and returns its number, and whether the process still lives.
func (m *mortal) step(kind string) (n int, alive bool) {
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

func (m *mortal) done(kind string, n int) (alive bool) {
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

// mortally makes a call while the process lives.
func mortally[T any](m *mortal, kind string, call func() (T, error)) (T, error) {
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

// mortally0 is mortally for calls that return only an error.
func mortally0(m *mortal, kind string, call func() error) error {
	_, err := mortally(m, kind, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

// quietly makes a call that is not counted.
func quietly[T any](m *mortal, call func() (T, error)) (T, error) {
	return mortally(m, "", call)
}

// mortalStore is a process's database.
type mortalStore struct {
	submission.Store
	m *mortal
}

// claimed counts claims that found something; at that time the lease is taken and the answer is on
// its way.
func (s *mortalStore) claimed(kind string, claim func() ([]*txmgr.Job, error)) ([]*txmgr.Job, error) {
	out, err := quietly(s.m, claim)
	if err != nil || len(out) == 0 {
		return out, err
	}
	return mortally(s.m, kind, func() ([]*txmgr.Job, error) { return out, nil })
}

func (s *mortalStore) Claim(ctx context.Context, worker uuid.UUID, limit int) ([]*txmgr.Job, error) {
	return s.claimed("claim", func() ([]*txmgr.Job, error) { return s.Store.Claim(ctx, worker, limit) })
}

func (s *mortalStore) ClaimSwapExecutions(ctx context.Context, worker uuid.UUID, limit int) ([]*txmgr.Job, error) {
	return s.claimed("claim of settlements", func() ([]*txmgr.Job, error) { return s.Store.ClaimSwapExecutions(ctx, worker, limit) })
}

func (s *mortalStore) ClaimLanded(ctx context.Context, worker uuid.UUID, limit int) ([]*txmgr.Job, error) {
	return s.claimed("claim of landed ones", func() ([]*txmgr.Job, error) { return s.Store.ClaimLanded(ctx, worker, limit) })
}

func (s *mortalStore) Heartbeat(ctx context.Context, w txmgr.Worker, lease time.Duration) (bool, error) {
	return quietly(s.m, func() (bool, error) { return s.Store.Heartbeat(ctx, w, lease) })
}

func (s *mortalStore) FreeDeadProcesses(ctx context.Context) (int, error) {
	return quietly(s.m, func() (int, error) { return s.Store.FreeDeadProcesses(ctx) })
}

func (s *mortalStore) ReleaseAll(ctx context.Context, worker uuid.UUID) (int, error) {
	return quietly(s.m, func() (int, error) { return s.Store.ReleaseAll(ctx, worker) })
}

func (s *mortalStore) Leases(ctx context.Context, worker uuid.UUID) ([]txmgr.Lease, error) {
	return quietly(s.m, func() ([]txmgr.Lease, error) { return s.Store.Leases(ctx, worker) })
}

func (s *mortalStore) Release(ctx context.Context, l txmgr.Lease, delay time.Duration, hold string) error {
	return mortally0(s.m, "release", func() error { return s.Store.Release(ctx, l, delay, hold) })
}

func (s *mortalStore) RecordAttempt(ctx context.Context, l txmgr.Lease, a txmgr.Attempt) error {
	return mortally0(s.m, "record of "+string(a.Purpose), func() error { return s.Store.RecordAttempt(ctx, l, a) })
}

func (s *mortalStore) MarkAttemptsDead(ctx context.Context, l txmgr.Lease, attempts []txmgr.DeadAttempt) error {
	return mortally0(s.m, "burial", func() error { return s.Store.MarkAttemptsDead(ctx, l, attempts) })
}

func (s *mortalStore) UpdateSwap(ctx context.Context, l txmgr.Lease, phase submission.Phase, timeout uint64) error {
	return mortally0(s.m, "note of "+string(phase), func() error { return s.Store.UpdateSwap(ctx, l, phase, timeout) })
}

func (s *mortalStore) Complete(ctx context.Context, landings []submission.Landing) ([]txmgr.Lease, error) {
	return mortally(s.m, "completion", func() ([]txmgr.Lease, error) { return s.Store.Complete(ctx, landings) })
}

func (s *mortalStore) Finalize(ctx context.Context, landings []submission.Landing, pins []submission.ProofAPin) ([]txmgr.Lease, error) {
	return mortally(s.m, "end", func() ([]txmgr.Lease, error) { return s.Store.Finalize(ctx, landings, pins) })
}

// mortalChain is a process's RPC, as the engine has it. It checks each send against the attempts in
// the database.
type mortalChain struct {
	txmgr.Chain
	m  *mortal
	db *pgxpool.Pool
}

func (c *mortalChain) Send(ctx context.Context, raw []byte, first bool, minContextSlot uint64) error {
	var n int
	if err := c.db.QueryRow(context.WithoutCancel(ctx), "SELECT count(*) FROM attempts WHERE signature = $1", raw[1:65]).Scan(&n); err != nil || n != 1 {
		c.m.mu.Lock()
		c.m.unmade = append(c.m.unmade, fmt.Sprintf("%d attempts know what was sent (%v)", n, err))
		c.m.mu.Unlock()
	}
	kind := "repetition"
	if first || c.fresh(raw) {
		kind = "send"
	}
	return mortally0(c.m, kind, func() error { return c.Chain.Send(ctx, raw, first, minContextSlot) })
}

// fresh reports whether the bytes were not sent by this process before.
func (c *mortalChain) fresh(raw []byte) bool {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	key := "sent " + string(raw[1:65])
	c.m.calls[key]++
	return c.m.calls[key] == 1
}

func (c *mortalChain) Simulate(ctx context.Context, raw []byte, replaceBlockhash bool, minContextSlot uint64) (onchain.Simulation, error) {
	return mortally(c.m, "simulation", func() (onchain.Simulation, error) {
		return c.Chain.Simulate(ctx, raw, replaceBlockhash, minContextSlot)
	})
}

func (c *mortalChain) LatestBlockhash(ctx context.Context) (onchain.Blockhash, error) {
	return mortally(c.m, "blockhash", func() (onchain.Blockhash, error) { return c.Chain.LatestBlockhash(ctx) })
}

func (c *mortalChain) Statuses(ctx context.Context, sigs []solana.Signature) (out []*onchain.Status, slot uint64, err error) {
	out, err = mortally(c.m, "statuses", func() (found []*onchain.Status, err error) {
		found, slot, err = c.Chain.Statuses(ctx, sigs)
		return found, err
	})
	return out, slot, err
}

func (c *mortalChain) Search(ctx context.Context, sigs []solana.Signature) (onchain.SearchResult, error) {
	return mortally(c.m, "search", func() (onchain.SearchResult, error) { return c.Chain.Search(ctx, sigs) })
}

// mortalReads is its RPC as the planner has it.
type mortalReads struct {
	swap.Chain
	m *mortal
}

func (c *mortalReads) Accounts(ctx context.Context, keys []solana.PublicKey, commitment onchain.Commitment, minContextSlot uint64) (out []*onchain.Account, slot uint64, err error) {
	out, err = mortally(c.m, "look at accounts", func() (found []*onchain.Account, err error) {
		found, slot, err = c.Chain.Accounts(ctx, keys, commitment, minContextSlot)
		return found, err
	})
	return out, slot, err
}

func (c *mortalReads) FindSwapEnd(ctx context.Context, s *shieldpool.Swap, first, last uint64) (*onchain.SwapEnd, error) {
	return mortally(c.m, "look for the end", func() (*onchain.SwapEnd, error) { return c.Chain.FindSwapEnd(ctx, s, first, last) })
}

// mortalRouter is its router.
type mortalRouter struct {
	swap.Router
	m *mortal
}

func (r *mortalRouter) Quote(ctx context.Context, q swap.QuoteRequest) (*swap.Quote, error) {
	return mortally(r.m, "quote", func() (*swap.Quote, error) { return r.Router.Quote(ctx, q) })
}

func (r *mortalRouter) Instructions(ctx context.Context, q *swap.Quote, user solana.PublicKey) (*swap.Instructions, error) {
	return mortally(r.m, "instructions", func() (*swap.Instructions, error) { return r.Router.Instructions(ctx, q, user) })
}

// deaf observes nothing.
type deaf struct{}

func (deaf) SwapDeferred(string)  {}
func (deaf) RouteRejected(string) {}

// settleWorld is a world that swaps.
type settleWorld struct {
	*world
	router string
}

// settleSlot gives a swap 6 s.
const settleSlot = 30 * time.Millisecond

func newSettleWorld(t *testing.T) *settleWorld {
	t.Helper()
	s := &settleWorld{world: newWorldOf(t, settleSlot)}
	var err error
	s.router, err = s.chain.ListenRouter("127.0.0.1:0")
	must(t, err)
	return s
}

// swapRun is one swap with a database and a payer of its own, from the proof to its end.
type swapRun struct {
	*settleWorld
	db    *pgxpool.Pool
	store *store.Store
	payer *feepayer.Key
	req   submission.Request
	call  *shieldpool.Call
	swap  *shieldpool.Swap
	net   uint64
}

// newSwapRun is for the test's own goroutine.
func (s *settleWorld) newSwapRun(gross, least uint64) *swapRun {
	s.t.Helper()
	r := &swapRun{settleWorld: s, db: pgtest.Pool(s.t), payer: s.newKey()}
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

// ask makes the run's request.
func (r *swapRun) ask(gross, least uint64) {
	s := r.settleWorld
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

// process is one relay's engine, on the run's database.
type process struct {
	*admission.Admission
	engine *submission.Handler
	cancel context.CancelFunc
	ended  chan struct{}
}

func (r *swapRun) process(m *mortal) (*process, error) { return r.wire(r.wiring(m)) }

// wiring is a mortal process's.
func (r *swapRun) wiring(m *mortal) wiring {
	return wiring{
		store: &mortalStore{r.store, m}, chain: &mortalChain{r.rpc, m, r.db}, reads: &mortalReads{r.rpc, m},
		router: func(c swap.Router) swap.Router { return &mortalRouter{c, m} },
	}
}

// wiring is the layer between a process and the world.
type wiring struct {
	store  submission.Store
	chain  txmgr.Chain
	reads  swap.Chain
	router func(swap.Router) swap.Router
	// spending caps nothing, and least is the payers' least balance, unless set.
	spending txmgr.Spending
	least    uint64
}

// wire makes a process and runs it.
func (r *swapRun) wire(w wiring) (*process, error) {
	if w.spending == nil {
		w.spending = unlimited{}
	}
	log := slog.New(slog.NewTextHandler(r.t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
	pays, err := feepayer.New(feepayer.Options{Keys: []*feepayer.Key{r.payer}, Balances: r.rpc, Log: log, Now: r.clock.now, MinBalance: max(w.least, sol/100)})
	if err != nil {
		return nil, err
	}
	client, err := router.New(router.Options{BaseURL: r.router, HTTP: router.NewHTTPClient(), Now: r.clock.now, Rand: rand.Float64, Log: log, Timeout: time.Second})
	if err != nil {
		return nil, err
	}
	saga, err := swap.New(swap.Options{
		Chain: w.reads, Router: w.router(client), Pool: r.pool, RouterProgram: market.ProgramID, Payers: pays,
		SlippageBps: 50, Observer: deaf{}, Log: log, Now: r.clock.now,
	})
	if err != nil {
		return nil, err
	}
	signs, err := submission.NewProofAPolicy("auto", w.store, r.key.Hash(), r.clock.now)
	if err != nil {
		return nil, err
	}
	observer := &counts{n: map[string]int{}}
	p := &process{ended: make(chan struct{})}
	p.engine, err = submission.New(submission.Options{
		Store: w.store, Chain: w.chain, State: r.state, Pool: r.pool, Payers: pays, Spending: w.spending, Leaves: noLeaves{}, ProofA: signs,
		Observer: observer, Log: log, Now: r.clock.now, Worker: uuid.New(), Concurrency: 4,
		Price:  txmgr.PriceRule{Cap: 1000, Percentile: 50},
		Timing: txmgr.Timing{Lease: 600 * time.Millisecond, Poll: settleSlot, Sweep: 5 * settleSlot / 2, Backoff: settleSlot, BackoffCap: 5 * settleSlot, Hold: 5 * settleSlot},
	})
	if err == nil {
		err = saga.Serve(p.engine, 4)
	}
	if err != nil {
		return nil, err
	}
	p.Admission, err = admission.New(admission.Options{
		Store: w.store, Pool: r.pool, State: r.state, Payers: pays, Spending: w.spending, Key: r.key, ProofA: signs, Observer: observer,
		Submissions: p.engine, Ready: always, Now: r.clock.now, NewID: uuid.New,
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go func() {
		defer close(p.ended)
		p.engine.Run(ctx)
		client.Close()
	}()
	return p, nil
}

func (p *process) stop() {
	p.cancel()
	<-p.ended
}

// await asks until ok, or an error says that it never will be.
func await(what string, ok func() (bool, error)) error {
	for deadline := time.Now().Add(patien); ; time.Sleep(settleSlot) {
		switch done, err := ok(); {
		case err != nil:
			return fmt.Errorf("%s: %w", what, err)
		case done:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("not within %s: %s", patien, what)
		}
	}
}

// ended reads the swap, once both of its legs are final.
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

// carry has a process begin the swap and die, and another finish it. met says that the process
// reached its death, or lived to the swap's end.
func (r *swapRun) carry(ctx context.Context, d death) (first *mortal, s *submission.Submission, err error) {
	first = newMortal(d)
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
	heir := newMortal(death{})
	if p, err = r.process(heir); err != nil {
		return first, nil, err
	}
	err = await("the heir finishes", end)
	p.stop()
	first.unmade = append(first.unmade, heir.unmade...)
	return first, s, err
}

// check checks the reported results against the chain, and the spending against both.
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
		fault("the swap state is still there")
	}
	settled, err := r.rpc.FindSwapEnd(ctx, r.swap, 0, math.MaxUint64)
	if err != nil || settled == nil {
		return append(faults, fmt.Sprintf("the chain has no end of the swap: %v", err))
	}
	if s.Swap.Signature == nil || *s.Swap.Signature != settled.Signature || string(s.Swap.Phase) != string(settled.How) {
		fault("it is told as %s, the chain says %s", s.Swap.Phase, settled.How)
	}
	const notes, state, account = 2 * 890_880, 2_011_440, 2_039_280
	var rent uint64
	switch s.Swap.Phase {
	case submission.PhaseExecuted:
		if tokens < least || lamports != 0 {
			fault("the recipient has %d tokens and %d lamports, the minimum is %d tokens", tokens, lamports, least)
		}
		rent = notes + account
	case submission.PhaseRefunded:
		if tokens != 0 || lamports != r.net+state {
			fault("the recipient has %d tokens and %d lamports, want %d lamports back", tokens, lamports, r.net+state)
		}
		rent = notes + state
		for _, i := range []int{1, 4, 5} {
			if accounts[i] != nil {
				rent += account
			}
		}
	default:
		fault("it ended as %s", s.Swap.Phase)
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

// checkRows checks the database for consistency and against the spending.
func (r *swapRun) checkRows(ctx context.Context, spent uint64) (faults []string) {
	for question, want := range map[string]int64{
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
		if err := r.db.QueryRow(ctx, question).Scan(&got); err != nil || got != want {
			faults = append(faults, fmt.Sprintf("%s gives %d, want %d (%v)", question, got, want, err))
		}
	}
	return faults
}

// crash carries a swap once for each death, with that many in parallel.
func (s *settleWorld) crash(atOnce int, gross, least uint64, want submission.Phase, deaths []death) {
	s.t.Helper()
	places := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	var mu sync.Mutex
	ends := map[submission.Phase]int{}
	unmet := 0
	for _, d := range deaths {
		places <- struct{}{}
		r := s.newSwapRun(gross, least)
		wg.Go(func() {
			defer func() { r.db.Close(); <-places }()
			began := time.Now()
			first, end, err := r.carry(s.t.Context(), d)
			if err != nil {
				s.t.Errorf("%s: %v", d, err)
				return
			}
			for _, fault := range append(r.check(s.t.Context(), end, least), first.unmade...) {
				s.t.Errorf("%s: %s", d, fault)
			}
			mu.Lock()
			defer mu.Unlock()
			ends[end.Swap.Phase]++
			if !first.died() {
				unmet++
			}
			s.t.Logf("%s: %s after %s, met %v", d, end.Swap.Phase, time.Since(began).Round(time.Millisecond), first.died())
		})
	}
	wg.Wait()
	s.t.Logf("%d deaths, of which %d were not met: %v", len(deaths), unmet, ends)
	if ends[want] < len(deaths)/2 {
		s.t.Errorf("of %d swaps %d were %s: the deaths are beside the point", len(deaths), ends[want], want)
	}
	if unmet > len(deaths)/4 {
		s.t.Errorf("%d of %d deaths were not met", unmet, len(deaths))
	}
}

// deathsOf are the points before and after each call of a life, with at most that many calls of a kind.
func deathsOf(calls map[string]int, most int) (out []death) {
	for _, kind := range slices.Sorted(maps.Keys(calls)) {
		if kind == "" || strings.HasPrefix(kind, "sent ") {
			continue
		}
		for n := 1; n <= min(calls[kind], most); n++ {
			out = append(out, death{kind, n, false}, death{kind, n, true})
		}
	}
	return out
}

// rehearse carries a swap without a death and returns the calls that it took.
func (s *settleWorld) rehearse(gross, least uint64, want submission.Phase) map[string]int {
	s.t.Helper()
	r := s.newSwapRun(gross, least)
	life, end, err := r.carry(s.t.Context(), death{})
	must(s.t, err)
	for _, fault := range append(r.check(s.t.Context(), end, least), life.unmade...) {
		s.t.Error(fault)
	}
	if end.Swap.Phase != want {
		s.t.Fatalf("without a death it is %s, want %s", end.Swap.Phase, want)
	}
	return life.calls
}

const swapGross = sol / 20

// TestAProcessDiesAtAnyCallOfASwapThatIsExecuted, and another finishes.
func TestAProcessDiesAtAnyCallOfASwapThatIsExecuted(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs a swap for each call that it makes")
	}
	s := newSettleWorld(t)
	net, _ := s.pool.Profile.Fees.Net(swapGross)
	state, err := s.chain.MarketState()
	must(t, err)
	least := state.Output(net) / 100 * 98
	calls := s.rehearse(swapGross, least, submission.PhaseExecuted)
	s.crash(10, swapGross, least, submission.PhaseExecuted, deathsOf(calls, 4))
}

// TestAProcessDiesAtAnyCallOfASwapThatIsRefunded, and another finishes.
func TestAProcessDiesAtAnyCallOfASwapThatIsRefunded(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs a swap for each call that it makes")
	}
	s := newSettleWorld(t)
	const least = 1 << 60
	calls := s.rehearse(swapGross, least, submission.PhaseRefunded)
	s.crash(12, swapGross, least, submission.PhaseRefunded, deathsOf(calls, 3))
}
