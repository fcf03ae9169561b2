package txmgr_test

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/market"
	"github.com/relaypool/relaypool/hack/localnet/router"
	"github.com/relaypool/relaypool/relay/internal/feepayer"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/swap"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// A seed repeats the faults, but not their effects, because time is real.
var (
	firstSeed = flag.Uint64("swaps.first", 1, "the first seed of the test of swaps with faults")
	seedCount = flag.Uint64("swaps.seeds", 3, "how many seeds the test of swaps with faults runs")
)

// errNoAnswer is the error of a call without an answer.
var errNoAnswer = fmt.Errorf("no answer came: %w", onchain.ErrUnavailable)

// callFaults chooses the faults of one process's calls while on is set: some calls are not made, the
// answers of some are lost, and some hang, at times for longer than a lease lasts.
type callFaults struct {
	on   *atomic.Bool
	mu   sync.Mutex
	rand *rand.Rand
	// onRecorded is called with each recorded attempt and its lease.
	onRecorded func(txmgr.Lease, *txmgr.Attempt)
}

// fate is the fate of one call.
type fate int

const (
	goesWell fate = iota
	notMade
	answerLost
)

// draw chooses the fate of a call, and how long the call hangs first.
func (calls *callFaults) draw() (fate, time.Duration) {
	if !calls.on.Load() {
		return goesWell, 0
	}
	calls.mu.Lock()
	defer calls.mu.Unlock()
	var hang time.Duration
	if calls.rand.IntN(40) == 0 {
		hang = time.Duration(calls.rand.IntN(1500)) * time.Millisecond
	}
	switch calls.rand.IntN(20) {
	case 0:
		return notMade, hang
	case 1, 2:
		return answerLost, hang
	default:
		return goesWell, hang
	}
}

// callWithFaults makes a call with the faults that callFaults chooses.
func callWithFaults[T any](ctx context.Context, calls *callFaults, call func() (T, error)) (T, error) {
	var none T
	f, hang := calls.draw()
	if hang > 0 {
		timer := time.NewTimer(hang)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
	if f == notMade {
		return none, errNoAnswer
	}
	out, err := call()
	if f == answerLost {
		return none, errNoAnswer
	}
	return out, err
}

func callWithFaults0(ctx context.Context, calls *callFaults, call func() error) error {
	_, err := callWithFaults(ctx, calls, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

// faultyStore is a database with the faults that callFaults chooses.
type faultyStore struct {
	submission.Store
	calls *callFaults
}

func (s *faultyStore) Claim(ctx context.Context, worker uuid.UUID, limit int) ([]*txmgr.Job, error) {
	return callWithFaults(ctx, s.calls, func() ([]*txmgr.Job, error) { return s.Store.Claim(ctx, worker, limit) })
}

func (s *faultyStore) ClaimSwapExecutions(ctx context.Context, worker uuid.UUID, limit int) ([]*txmgr.Job, error) {
	return callWithFaults(ctx, s.calls, func() ([]*txmgr.Job, error) { return s.Store.ClaimSwapExecutions(ctx, worker, limit) })
}

func (s *faultyStore) Heartbeat(ctx context.Context, w txmgr.Worker, lease time.Duration) (bool, error) {
	return callWithFaults(ctx, s.calls, func() (bool, error) { return s.Store.Heartbeat(ctx, w, lease) })
}

func (s *faultyStore) Release(ctx context.Context, l txmgr.Lease, delay time.Duration, hold string) error {
	return callWithFaults0(ctx, s.calls, func() error { return s.Store.Release(ctx, l, delay, hold) })
}

func (s *faultyStore) RecordAttempt(ctx context.Context, l txmgr.Lease, a txmgr.Attempt) error {
	return callWithFaults0(ctx, s.calls, func() error {
		err := s.Store.RecordAttempt(ctx, l, a)
		if err == nil {
			s.calls.onRecorded(l, &a)
		}
		return err
	})
}

func (s *faultyStore) MarkAttemptsDead(ctx context.Context, l txmgr.Lease, attempts []txmgr.DeadAttempt) error {
	return callWithFaults0(ctx, s.calls, func() error { return s.Store.MarkAttemptsDead(ctx, l, attempts) })
}

func (s *faultyStore) UpdateSwap(ctx context.Context, l txmgr.Lease, phase submission.Phase, timeout uint64) error {
	return callWithFaults0(ctx, s.calls, func() error { return s.Store.UpdateSwap(ctx, l, phase, timeout) })
}

func (s *faultyStore) Complete(ctx context.Context, landings []submission.Landing) ([]txmgr.Lease, error) {
	return callWithFaults(ctx, s.calls, func() ([]txmgr.Lease, error) { return s.Store.Complete(ctx, landings) })
}

func (s *faultyStore) Finalize(ctx context.Context, landings []submission.Landing, pins []submission.ProofAPin) ([]txmgr.Lease, error) {
	return callWithFaults(ctx, s.calls, func() ([]txmgr.Lease, error) { return s.Store.Finalize(ctx, landings, pins) })
}

func (s *faultyStore) Reopen(ctx context.Context, l txmgr.Lease) error {
	return callWithFaults0(ctx, s.calls, func() error { return s.Store.Reopen(ctx, l) })
}

// faultyChain is an RPC with the faults that callFaults chooses, for manager and swap executor.
type faultyChain struct {
	chainCalls
	calls *callFaults
}

// chainCalls are the chain calls of manager and swap executor.
type chainCalls interface {
	txmgr.Chain
	Accounts(ctx context.Context, keys []solana.PublicKey, commitment onchain.Commitment, minContextSlot uint64) ([]*onchain.Account, uint64, error)
	FindSwapEnd(ctx context.Context, swap *shieldpool.Swap, first, last uint64) (*onchain.SwapEnd, error)
	Corroborated(slot uint64) bool
}

func (c *faultyChain) Send(ctx context.Context, raw []byte, how onchain.Sending, minContextSlot uint64) error {
	return callWithFaults0(ctx, c.calls, func() error { return c.chainCalls.Send(ctx, raw, how, minContextSlot) })
}

func (c *faultyChain) Simulate(ctx context.Context, raw []byte, replaceBlockhash bool, minContextSlot uint64) (onchain.Simulation, error) {
	return callWithFaults(ctx, c.calls, func() (onchain.Simulation, error) {
		return c.chainCalls.Simulate(ctx, raw, replaceBlockhash, minContextSlot)
	})
}

func (c *faultyChain) Statuses(ctx context.Context, sigs []solana.Signature) (out []*onchain.Status, slot uint64, err error) {
	out, err = callWithFaults(ctx, c.calls, func() (found []*onchain.Status, err error) {
		found, slot, err = c.chainCalls.Statuses(ctx, sigs)
		return found, err
	})
	return out, slot, err
}

func (c *faultyChain) Search(ctx context.Context, sigs []solana.Signature) (onchain.SearchResult, error) {
	return callWithFaults(ctx, c.calls, func() (onchain.SearchResult, error) { return c.chainCalls.Search(ctx, sigs) })
}

func (c *faultyChain) Accounts(ctx context.Context, keys []solana.PublicKey, commitment onchain.Commitment, minContextSlot uint64) (out []*onchain.Account, slot uint64, err error) {
	out, err = callWithFaults(ctx, c.calls, func() (found []*onchain.Account, err error) {
		found, slot, err = c.chainCalls.Accounts(ctx, keys, commitment, minContextSlot)
		return found, err
	})
	return out, slot, err
}

func (c *faultyChain) FindSwapEnd(ctx context.Context, swap *shieldpool.Swap, first, last uint64) (*onchain.SwapEnd, error) {
	return callWithFaults(ctx, c.calls, func() (*onchain.SwapEnd, error) { return c.chainCalls.FindSwapEnd(ctx, swap, first, last) })
}

// chaos is several processes, their swaps, and the faults of their world.
type chaos struct {
	*swapWorld
	db    *pgxpool.Pool
	swaps []*swapRun
	ids   []uuid.UUID
	rand  *rand.Rand
	// stranger prepares swaps of others.
	stranger *feepayer.Key

	mu     sync.Mutex
	faults []string
}

func (c *chaos) fault(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

// recorded checks a new attempt: every earlier attempt is dead, and an execution pays the user's
// minimum. It runs after the commit, which makes no difference, because a dead attempt stays dead.
func (c *chaos) recorded(l txmgr.Lease, a *txmgr.Attempt) {
	ctx := context.WithoutCancel(c.t.Context())
	if a.Purpose == txmgr.PurposeExecute {
		c.checkMinimum(a)
	}
	rows, err := c.db.Query(ctx, `SELECT signature, last_valid_block_height FROM attempts
		WHERE submission_id = $1 AND signature <> $2 ORDER BY signature`, l.ID, a.Signature[:])
	if err != nil {
		c.fault("read attempts: %v", err)
		return
	}
	defer rows.Close()
	for rows.Next() {
		var raw []byte
		var last uint64
		if err := rows.Scan(&raw, &last); err != nil {
			c.fault("read attempts: %v", err)
			return
		}
		result, err := c.rpc.Search(ctx, []solana.Signature{solana.SignatureFromBytes(raw)})
		if err != nil {
			c.fault("search an attempt: %v", err)
			return
		}
		st := result.Statuses[0]
		switch {
		case st != nil && st.Err != nil && st.Confirmation.AtLeast(onchain.Finalized):
		case st == nil && result.FinalizedHeight > last:
		default:
			c.fault("death rule: an attempt with purpose %s was signed while another could land up to height %d: its status is %+v at finalized height %d", a.Purpose, last, st, result.FinalizedHeight)
		}
	}
}

// checkMinimum checks that an execution swaps all lamports, for at least the user's minimum.
func (c *chaos) checkMinimum(a *txmgr.Attempt) {
	tx, err := solana.TransactionFromBytes(a.Raw)
	if err != nil {
		c.fault("an execution is not a valid transaction: %v", err)
		return
	}
	for _, ix := range tx.Message.Instructions {
		p := c.pool.Profile
		if tx.Message.AccountKeys[ix.ProgramIDIndex] != p.ProgramID || ix.Data[0] != p.Tags.ExecuteSwap {
			continue
		}
		at := slices.IndexFunc(c.swaps, func(r *swapRun) bool { return slices.Equal(r.swap.Nullifier[:], ix.Data[1:33]) })
		if at < 0 || len(ix.Data) < 33+17 {
			c.fault("an execution is of an unknown swap")
			return
		}
		trade, r := ix.Data[33:], c.swaps[at]
		if in, least := binary.LittleEndian.Uint64(trade[1:]), binary.LittleEndian.Uint64(trade[9:]); in != r.net || least < r.call.Swap.MinOutput {
			c.fault("an execution was signed that swaps %d of %d lamports for at least %d tokens; the user's minimum is %d", in, r.net, least, r.call.Swap.MinOutput)
		}
		return
	}
	c.fault("an execution has no execute instruction")
}

// price sets the market's price, in per cent of the default. A fork may roll the change back.
func (c *chaos) price(percent uint64) {
	if err := c.chain.SetReserves(market.Reserves{Lamports: localnet.DefaultReserveLamports, Tokens: localnet.DefaultReserveTokens / 100 * percent}); err != nil {
		c.t.Logf("Setting the price failed: %v", err)
	}
}

// act makes a random change to the world.
func (c *chaos) act() {
	c.t.Helper()
	switch c.rand.IntN(8) {
	case 0, 1:
		depth := 1 + c.rand.Uint64N(12)
		again := c.rand.IntN(3)
		undone, err := c.chain.Fork(depth, func(*bank.Landed) bool { return again > 0 && (again == 1 || c.rand.IntN(2) == 0) })
		c.t.Logf("Fork of %d blocks: %d transactions rolled back, error %v", depth, len(undone), err)
	case 2:
		c.price(50)
	case 3, 4:
		c.price(100)
	case 5:
		must(c.t, c.chain.Router().Set(router.Settings{Lies: []router.LieRule{{Lie: router.WrongProgram, Probability: 0.5}, {Lie: router.Garbage, Probability: 0.3}}}))
	case 6:
		must(c.t, c.chain.Router().Set(router.Settings{}))
	default: // a stranger prepares a swap
		r := c.swaps[c.rand.IntN(len(c.swaps))]
		prepare, err := r.swap.Prepare(c.stranger.PublicKey())
		must(c.t, err)
		hash, err := c.rpc.LatestBlockhash(c.t.Context())
		must(c.t, err)
		tx, err := shieldpool.Versioned(c.stranger.PublicKey(), shieldpool.Compute{Limit: 100_000}, hash.Hash, nil, prepare)
		must(c.t, err)
		message, err := tx.Message.MarshalBinary()
		must(c.t, err)
		sig, err := c.stranger.Sign(context.Background(), message)
		must(c.t, err)
		tx.Signatures = []solana.Signature{sig}
		raw, err := tx.MarshalBinary()
		must(c.t, err)
		if err := c.rpc.Send(c.t.Context(), raw, onchain.Sending{}, 0); err != nil {
			c.t.Logf("A stranger's transaction was not accepted: %v", err)
		}
	}
}

// TestSwapsEndOnceDespiteFaults runs swaps on two processes whose calls are lost and hang, with a chain that
// forks, a router that lies and a price that varies. Once the faults end, every swap must end, and
// exactly once.
func TestSwapsEndOnceDespiteFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("the test runs ten swaps with faults for each seed")
	}
	t.Parallel()
	for seed := *firstSeed; seed < *firstSeed+*seedCount; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			runWithFaults(t, seed)
		})
	}
}

func runWithFaults(t *testing.T, seed uint64) {
	const swaps, actions = 10, 60
	c := newChaos(t, seed, swaps)
	on := new(atomic.Bool)
	on.Store(true)
	var processes []*process
	for i := range uint64(2) {
		p, err := c.swaps[0].faultyProcess(&callFaults{on: on, rand: rand.New(rand.NewPCG(seed, i)), onRecorded: c.recorded})
		must(t, err)
		t.Cleanup(p.stop)
		processes = append(processes, p)
	}
	for i, r := range c.swaps {
		var s *submission.Submission
		c.eventually("a swap is accepted", func() bool {
			var err error
			s, err = processes[i%2].Submit(t.Context(), r.req)
			return err == nil
		})
		c.ids = append(c.ids, s.ID)
	}
	for range actions {
		c.act()
		time.Sleep(time.Duration(20+c.rand.IntN(200)) * time.Millisecond) // the pause between faults
	}
	on.Store(false)
	must(t, c.chain.Router().Set(router.Settings{}))
	c.price(100)
	var ended []*submission.Submission
	polls := 0
	err := await("all swaps end", func() (bool, error) {
		if polls++; polls%60 == 0 {
			c.clock.advance(31 * time.Second) // until attempts are old enough to be resolved
		}
		ended = ended[:0]
		for i, r := range c.swaps {
			s, err := r.ended(t.Context(), c.ids[i])
			if err != nil || s == nil {
				return false, err
			}
			ended = append(ended, s)
		}
		return true, nil
	})
	must(t, err)
	c.verify(ended)
}

// newChaos prepares that many swaps with roots that no fork rolls back.
func newChaos(t *testing.T, seed uint64, swaps int) *chaos {
	t.Helper()
	c := &chaos{swapWorld: newSwapWorld(t), rand: rand.New(rand.NewPCG(seed, 99))}
	c.stranger = c.newKey()
	must(t, c.chain.Fund(c.stranger.PublicKey(), sol))
	net, _ := c.pool.Profile.Fees.Net(swapGross)
	state, err := c.chain.MarketState()
	must(t, err)
	for i := range swaps {
		least := uint64(1 << 60) // more than the market can pay, so the swap is refunded
		if i%4 > 0 {
			least = state.Output(net) / 100 * 97
		}
		if i == 0 {
			c.swaps = append(c.swaps, c.newSwapRun(swapGross, least))
			continue
		}
		r := *c.swaps[0]
		r.ask(swapGross, least)
		c.swaps = append(c.swaps, &r)
	}
	c.db = c.swaps[0].db
	c.chain.Finalize()
	return c
}

// faultyProcess starts a process whose calls have the given faults.
func (r *swapRun) faultyProcess(calls *callFaults) (*process, error) {
	chain := &faultyChain{r.rpc, calls}
	return r.wire(wiring{store: &faultyStore{r.store, calls}, chain: chain, reads: chain, router: func(c swap.Router) swap.Router { return c }})
}

// verify checks every swap's end against the chain, and the payer's balance against all swaps.
func (c *chaos) verify(ended []*submission.Submission) {
	c.t.Helper()
	ctx := c.t.Context()
	const notes, state, account = 2 * 650_240, 1_468_120, 1_488_440
	var rent uint64
	ends := map[submission.Phase]int{}
	for i, r := range c.swaps {
		s := ended[i]
		ends[s.Swap.Phase]++
		accounts, _, err := r.rpc.Accounts(ctx, []solana.PublicKey{r.swap.State, r.call.Swap.RecipientATA, r.call.Recipient, r.swap.WSOL, r.swap.Output}, onchain.Confirmed, 0)
		must(c.t, err)
		end, err := r.rpc.FindSwapEnd(ctx, r.swap, 0, math.MaxInt64)
		must(c.t, err)
		if end == nil || s.Swap.Signature == nil || *s.Swap.Signature != end.Signature || string(s.Swap.Phase) != string(end.How) {
			c.fault("swap %d is reported as %s; the end on the chain is %+v", i, s.Swap.Phase, end)
			continue
		}
		var tokens, lamports uint64
		if a := accounts[1]; a != nil {
			held, err := shieldpool.ParseTokenAccount(a.Data)
			must(c.t, err)
			tokens = held.Amount
		}
		if a := accounts[2]; a != nil {
			lamports = a.Lamports
		}
		rent += notes
		switch {
		case accounts[0] != nil:
			c.fault("the state account of swap %d still exists", i)
		case s.Swap.Phase == submission.PhaseExecuted:
			if tokens < r.call.Swap.MinOutput || lamports != 0 {
				c.fault("swap %d paid %d tokens and %d lamports, want at least %d tokens and no lamports", i, tokens, lamports, r.call.Swap.MinOutput)
			}
			rent += account
		default:
			// If a stranger prepared the swap, the rent of the wrapped SOL account goes to the wallet too.
			refund := r.net + state
			if tokens != 0 || lamports != refund && lamports != refund+account {
				c.fault("swap %d paid %d tokens and %d lamports, want a refund of %d lamports", i, tokens, lamports, refund)
			}
			rent += lamports - r.net
			for _, a := range []*onchain.Account{accounts[1], accounts[3], accounts[4]} {
				if a != nil {
					rent += account
				}
			}
		}
	}
	var fees uint64
	infos, err := c.rpc.SignaturesFor(ctx, c.swaps[0].payer.PublicKey(), onchain.Confirmed, solana.Signature{}, solana.Signature{}, 0)
	must(c.t, err)
	failed := 0
	for _, info := range infos {
		paid, err := c.rpc.Payment(ctx, info.Signature, c.swaps[0].payer.PublicKey())
		must(c.t, err)
		if paid.FeePayer.Equals(c.swaps[0].payer.PublicKey()) {
			fees += paid.Fee
		}
		if info.Failed {
			failed++
		}
	}
	if spent := sol - c.balance(c.swaps[0].payer.PublicKey()); spent != fees+rent {
		c.fault("the payer spent %d lamports, want %d for fees and %d for rent", spent, fees, rent)
	}
	var rows, attempts int
	must(c.t, c.db.QueryRow(ctx, "SELECT count(*), (SELECT count(*) FROM attempts) FROM submissions").Scan(&rows, &attempts))
	if rows != 2*len(c.swaps) {
		c.fault("there are %d rows for %d swaps, want two for each", rows, len(c.swaps))
	}
	c.t.Logf("%d swaps: %v, with %d attempts, of which %d failed on the chain", len(c.swaps), ends, attempts, failed)
	for _, f := range c.faults {
		c.t.Error(f)
	}
}
