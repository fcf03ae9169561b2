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

// The world's moves repeat with the seed; their effects do not, because time is real.
var (
	settleFirst = flag.Uint64("settle.first", 1, "the first seed of the unruly world")
	settleSeeds = flag.Uint64("settle.seeds", 3, "how many seeds the unruly world runs")
)

// errUnruly is a call without an answer.
var errUnruly = fmt.Errorf("no answer came: %w", onchain.ErrUnavailable)

// unruly is the faults of one process's calls, while it is on: some are not made, some are made and
// their answer is lost, and some hang for longer than a lease lasts.
type unruly struct {
	on   *atomic.Bool
	mu   sync.Mutex
	rand *rand.Rand
	// watch is called with each recorded attempt, with its lease.
	watch func(txmgr.Lease, *txmgr.Attempt)
}

// fate of one call.
type fate int

const (
	goesWell fate = iota
	notMade
	answerLost
)

// draw decides about a call, and how long it hangs first.
func (u *unruly) draw() (fate, time.Duration) {
	if !u.on.Load() {
		return goesWell, 0
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	var still time.Duration
	if u.rand.IntN(40) == 0 {
		still = time.Duration(u.rand.IntN(1500)) * time.Millisecond
	}
	switch u.rand.IntN(20) {
	case 0:
		return notMade, still
	case 1, 2:
		return answerLost, still
	default:
		return goesWell, still
	}
}

// unrulily makes a call, or not.
func unrulily[T any](ctx context.Context, u *unruly, call func() (T, error)) (T, error) {
	var none T
	f, still := u.draw()
	if still > 0 {
		timer := time.NewTimer(still) // the fault itself, not a wait of the test
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
	if f == notMade {
		return none, errUnruly
	}
	out, err := call()
	if f == answerLost {
		return none, errUnruly
	}
	return out, err
}

func unrulily0(ctx context.Context, u *unruly, call func() error) error {
	_, err := unrulily(ctx, u, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

// unrulyStore is a database behind an unruly line.
type unrulyStore struct {
	submission.Store
	u *unruly
}

func (s *unrulyStore) Claim(ctx context.Context, worker uuid.UUID, limit int) ([]*txmgr.Job, error) {
	return unrulily(ctx, s.u, func() ([]*txmgr.Job, error) { return s.Store.Claim(ctx, worker, limit) })
}

func (s *unrulyStore) ClaimSwapExecutions(ctx context.Context, worker uuid.UUID, limit int) ([]*txmgr.Job, error) {
	return unrulily(ctx, s.u, func() ([]*txmgr.Job, error) { return s.Store.ClaimSwapExecutions(ctx, worker, limit) })
}

func (s *unrulyStore) Heartbeat(ctx context.Context, w txmgr.Worker, lease time.Duration) (bool, error) {
	return unrulily(ctx, s.u, func() (bool, error) { return s.Store.Heartbeat(ctx, w, lease) })
}

func (s *unrulyStore) Release(ctx context.Context, l txmgr.Lease, delay time.Duration, hold string) error {
	return unrulily0(ctx, s.u, func() error { return s.Store.Release(ctx, l, delay, hold) })
}

func (s *unrulyStore) RecordAttempt(ctx context.Context, l txmgr.Lease, a txmgr.Attempt) error {
	return unrulily0(ctx, s.u, func() error {
		err := s.Store.RecordAttempt(ctx, l, a)
		if err == nil {
			s.u.watch(l, &a)
		}
		return err
	})
}

func (s *unrulyStore) MarkAttemptsDead(ctx context.Context, l txmgr.Lease, attempts []txmgr.DeadAttempt) error {
	return unrulily0(ctx, s.u, func() error { return s.Store.MarkAttemptsDead(ctx, l, attempts) })
}

func (s *unrulyStore) UpdateSwap(ctx context.Context, l txmgr.Lease, phase submission.Phase, timeout uint64) error {
	return unrulily0(ctx, s.u, func() error { return s.Store.UpdateSwap(ctx, l, phase, timeout) })
}

func (s *unrulyStore) Complete(ctx context.Context, landings []submission.Landing) ([]txmgr.Lease, error) {
	return unrulily(ctx, s.u, func() ([]txmgr.Lease, error) { return s.Store.Complete(ctx, landings) })
}

func (s *unrulyStore) Finalize(ctx context.Context, landings []submission.Landing, pins []submission.ProofAPin) ([]txmgr.Lease, error) {
	return unrulily(ctx, s.u, func() ([]txmgr.Lease, error) { return s.Store.Finalize(ctx, landings, pins) })
}

func (s *unrulyStore) Reopen(ctx context.Context, l txmgr.Lease) error {
	return unrulily0(ctx, s.u, func() error { return s.Store.Reopen(ctx, l) })
}

// unrulyChain is an RPC behind one, for engine and saga.
type unrulyChain struct {
	chainCalls
	u *unruly
}

// chainCalls are the chain calls of both.
type chainCalls interface {
	txmgr.Chain
	Accounts(ctx context.Context, keys []solana.PublicKey, commitment onchain.Commitment, minContextSlot uint64) ([]*onchain.Account, uint64, error)
	FindSwapEnd(ctx context.Context, swap *shieldpool.Swap, first, last uint64) (*onchain.SwapEnd, error)
	Corroborated(slot uint64) bool
}

func (c *unrulyChain) Send(ctx context.Context, raw []byte, first bool, minContextSlot uint64) error {
	return unrulily0(ctx, c.u, func() error { return c.chainCalls.Send(ctx, raw, first, minContextSlot) })
}

func (c *unrulyChain) Simulate(ctx context.Context, raw []byte, replaceBlockhash bool, minContextSlot uint64) (onchain.Simulation, error) {
	return unrulily(ctx, c.u, func() (onchain.Simulation, error) {
		return c.chainCalls.Simulate(ctx, raw, replaceBlockhash, minContextSlot)
	})
}

func (c *unrulyChain) Statuses(ctx context.Context, sigs []solana.Signature) (out []*onchain.Status, slot uint64, err error) {
	out, err = unrulily(ctx, c.u, func() (found []*onchain.Status, err error) {
		found, slot, err = c.chainCalls.Statuses(ctx, sigs)
		return found, err
	})
	return out, slot, err
}

func (c *unrulyChain) Search(ctx context.Context, sigs []solana.Signature) (onchain.SearchResult, error) {
	return unrulily(ctx, c.u, func() (onchain.SearchResult, error) { return c.chainCalls.Search(ctx, sigs) })
}

func (c *unrulyChain) Accounts(ctx context.Context, keys []solana.PublicKey, commitment onchain.Commitment, minContextSlot uint64) (out []*onchain.Account, slot uint64, err error) {
	out, err = unrulily(ctx, c.u, func() (found []*onchain.Account, err error) {
		found, slot, err = c.chainCalls.Accounts(ctx, keys, commitment, minContextSlot)
		return found, err
	})
	return out, slot, err
}

func (c *unrulyChain) FindSwapEnd(ctx context.Context, swap *shieldpool.Swap, first, last uint64) (*onchain.SwapEnd, error) {
	return unrulily(ctx, c.u, func() (*onchain.SwapEnd, error) { return c.chainCalls.FindSwapEnd(ctx, swap, first, last) })
}

// chaos is several processes, their swaps and the unruly world around them.
type chaos struct {
	*settleWorld
	db    *pgxpool.Pool
	swaps []*swapRun
	ids   []uuid.UUID
	rand  *rand.Rand
	// stranger acts on swaps of others.
	stranger *feepayer.Key

	mu     sync.Mutex
	faults []string
}

func (c *chaos) fault(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

// recorded checks a new attempt against the rule for dead attempts and the user's minimum. It runs
// after the commit; an attempt that was dead then stays dead.
func (c *chaos) recorded(l txmgr.Lease, a *txmgr.Attempt) {
	ctx := context.WithoutCancel(c.t.Context())
	if a.Purpose == txmgr.PurposeExecute {
		c.mindsTheMinimum(a)
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
		look, err := c.rpc.Search(ctx, []solana.Signature{solana.SignatureFromBytes(raw)})
		if err != nil {
			c.fault("look an attempt up: %v", err)
			return
		}
		st := look.Statuses[0]
		switch {
		case st != nil && st.Err != nil && st.Confirmation.AtLeast(onchain.Finalized):
		case st == nil && look.FinalizedHeight > last:
		default:
			c.fault("death rule: an attempt to %s was signed while another could land up to height %d: status %+v, finalized %d", a.Purpose, last, st, look.FinalizedHeight)
		}
	}
}

// mindsTheMinimum reads the minimum output from an execution.
func (c *chaos) mindsTheMinimum(a *txmgr.Attempt) {
	tx, err := solana.TransactionFromBytes(a.Raw)
	if err != nil {
		c.fault("an execution is no transaction: %v", err)
		return
	}
	for _, ix := range tx.Message.Instructions {
		p := c.pool.Profile
		if tx.Message.AccountKeys[ix.ProgramIDIndex] != p.ProgramID || ix.Data[0] != p.Tags.ExecuteSwap {
			continue
		}
		at := slices.IndexFunc(c.swaps, func(r *swapRun) bool { return slices.Equal(r.swap.Nullifier[:], ix.Data[1:33]) })
		if at < 0 || len(ix.Data) < 33+17 {
			c.fault("an execution is of no swap that is known")
			return
		}
		trade, r := ix.Data[33:], c.swaps[at]
		if in, least := binary.LittleEndian.Uint64(trade[1:]), binary.LittleEndian.Uint64(trade[9:]); in != r.net || least < r.call.Swap.MinOutput {
			c.fault("an execution was signed that swaps %d of %d lamports for at least %d tokens, when the minimum is %d", in, r.net, least, r.call.Swap.MinOutput)
		}
		return
	}
	c.fault("an execution executes nothing")
}

// price sets the market's price, in per cent of the first one. A fork that dies loses the setting,
// so the last one is repeated until it stays.
func (c *chaos) price(percent uint64) {
	if err := c.chain.SetReserves(market.Reserves{Lamports: localnet.DefaultReserveLamports, Tokens: localnet.DefaultReserveTokens / 100 * percent}); err != nil {
		c.t.Logf("The price stays: %v", err)
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
		c.t.Logf("Fork of %d blocks: %d transactions undone, %v", depth, len(undone), err)
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
		sig, err := c.stranger.Sign(message)
		must(c.t, err)
		tx.Signatures = []solana.Signature{sig}
		raw, err := tx.MarshalBinary()
		must(c.t, err)
		if err := c.rpc.Send(c.t.Context(), raw, false, 0); err != nil {
			c.t.Logf("A stranger's transaction was not taken: %v", err)
		}
	}
}

// TestAnUnrulyWorld carries swaps with two processes whose calls are lost and hang, over a chain
// that forks, a router that lies and a price that varies, until the faults end, and every swap with
// them, in one way only.
func TestAnUnrulyWorld(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs a swap for each seed against every fault")
	}
	t.Parallel()
	for seed := *settleFirst; seed < *settleFirst+*settleSeeds; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			unrulyWorld(t, seed)
		})
	}
}

func unrulyWorld(t *testing.T, seed uint64) {
	const swaps, moves = 10, 60
	c := newChaos(t, seed, swaps)
	on := new(atomic.Bool)
	on.Store(true)
	var processes []*process
	for i := range uint64(2) {
		p, err := c.swaps[0].unrulyProcess(&unruly{on: on, rand: rand.New(rand.NewPCG(seed, i)), watch: c.recorded})
		must(t, err)
		t.Cleanup(p.stop)
		processes = append(processes, p)
	}
	for i, r := range c.swaps {
		var s *submission.Submission
		c.eventually("a swap is taken", func() bool {
			var err error
			s, err = processes[i%2].Submit(t.Context(), r.req)
			return err == nil
		})
		c.ids = append(c.ids, s.ID)
	}
	for range moves {
		c.act()
		time.Sleep(time.Duration(20+c.rand.IntN(200)) * time.Millisecond) // the pace of the faults
	}
	on.Store(false)
	must(t, c.chain.Router().Set(router.Settings{}))
	c.price(100)
	var ended []*submission.Submission
	looks := 0
	err := await("all swaps end", func() (bool, error) {
		if looks++; looks%60 == 0 {
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

// newChaos prepares that many swaps, over a root that no fork takes away.
func newChaos(t *testing.T, seed uint64, swaps int) *chaos {
	t.Helper()
	c := &chaos{settleWorld: newSettleWorld(t), rand: rand.New(rand.NewPCG(seed, 99))}
	c.stranger = c.newKey()
	must(t, c.chain.Fund(c.stranger.PublicKey(), sol))
	net, _ := c.pool.Profile.Fees.Net(swapGross)
	state, err := c.chain.MarketState()
	must(t, err)
	for i := range swaps {
		least := uint64(1 << 60) // no market gives that
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

// unrulyProcess is a process behind unruly lines.
func (r *swapRun) unrulyProcess(u *unruly) (*process, error) {
	chain := &unrulyChain{r.rpc, u}
	return r.wire(wiring{store: &unrulyStore{r.store, u}, chain: chain, reads: chain, router: func(c swap.Router) swap.Router { return c }})
}

// verify checks every swap's end against the chain, and the payer's balance against all of them.
func (c *chaos) verify(ended []*submission.Submission) {
	c.t.Helper()
	ctx := c.t.Context()
	const notes, state, account = 2 * 890_880, 2_011_440, 2_039_280
	var rent uint64
	ends := map[submission.Phase]int{}
	for i, r := range c.swaps {
		s := ended[i]
		ends[s.Swap.Phase]++
		accounts, _, err := r.rpc.Accounts(ctx, []solana.PublicKey{r.swap.State, r.call.Swap.RecipientATA, r.call.Recipient, r.swap.WSOL, r.swap.Output}, onchain.Confirmed, 0)
		must(c.t, err)
		settled, err := r.rpc.FindSwapEnd(ctx, r.swap, 0, math.MaxInt64)
		must(c.t, err)
		if settled == nil || s.Swap.Signature == nil || *s.Swap.Signature != settled.Signature || string(s.Swap.Phase) != string(settled.How) {
			c.fault("swap %d is told as %s, the chain says %+v", i, s.Swap.Phase, settled)
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
			c.fault("the state of swap %d is still there", i)
		case s.Swap.Phase == submission.PhaseExecuted:
			if tokens < r.call.Swap.MinOutput || lamports != 0 {
				c.fault("swap %d gave %d tokens and %d lamports, the minimum is %d tokens", i, tokens, lamports, r.call.Swap.MinOutput)
			}
			rent += account
		default:
			// With the lamports that a stranger wrapped their account's rent goes to the wallet.
			back := r.net + state
			if tokens != 0 || lamports != back && lamports != back+account {
				c.fault("swap %d gave %d tokens and %d lamports, want %d lamports back", i, tokens, lamports, back)
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
		c.fault("there are %d rows of %d swaps", rows, len(c.swaps))
	}
	c.t.Logf("%d swaps: %v, with %d attempts, of which %d failed on the chain", len(c.swaps), ends, attempts, failed)
	for _, f := range c.faults {
		c.t.Error(f)
	}
}
