package sweep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
)

// maxFailures is how many failures on the chain make a run give up. Each failure costs a fee, and a
// person has to find the cause.
const maxFailures = 5

// reportInterval is how often a waiting run logs what it waits for.
const reportInterval = 30 * time.Second

// FundOrder names the old payers, From, and the new payers to fund, To. All amounts are
// lamports.
type FundOrder struct {
	From []txmgr.Payer
	To   []solana.PublicKey
	// Target is the balance that each of To gets; Keep is the least that each of From keeps.
	Target, Keep uint64
}

// Fund brings each new payer to the target. When the lamports that the old payers have above
// Keep are not enough, it raises the poorest new payers to equal balances. It returns once all
// transactions are finalized. Its errors are *Short when a new payer would stay unusable,
// *Unfinished when ctx ends, and errors of the store and the keys.
func (s *Sweeper) Fund(ctx context.Context, o FundOrder) (Result, error) {
	r := &run{Sweeper: s, step: StepFund, from: o.From, to: o.To}
	r.plan = func(from, to []balance, price uint64) ([]move, uint64, *Short) {
		moves, short := fundPlan(from, to, &o, price)
		return moves, 0, short
	}
	return r.execute(ctx, slices.Concat(r.payers(), o.To))
}

// All waits until no attempt of the payers can land any more, moves all their lamports
// to one address, and completes their accounting. It returns once all transactions are
// finalized. Its errors are *Unfinished when ctx ends, and errors of the store, the keys and the
// accounting.
func (s *Sweeper) All(ctx context.Context, from []txmgr.Payer, to solana.PublicKey) (Result, error) {
	r := &run{Sweeper: s, step: StepAll, from: from, to: []solana.PublicKey{to}}
	r.plan = func(from, _ []balance, price uint64) ([]move, uint64, *Short) {
		moves, leftover := allPlan(from, to, price)
		return moves, leftover, nil
	}
	return r.execute(ctx, r.payers())
}

// Drain waits until no transaction of the payers can land any more and all landed
// transactions are finalized. Its errors are *Unfinished when ctx ends, and errors of
// the store.
func (s *Sweeper) Drain(ctx context.Context, payers []solana.PublicKey) (Result, error) {
	r := &run{Sweeper: s, addresses: payers}
	err := r.withLocks(ctx, payers, func(ctx context.Context) error {
		if err := r.resolveOpen(ctx); err != nil {
			return err
		}
		return r.drain(ctx)
	})
	return r.result, err
}

// run is one run of a step.
type run struct {
	*Sweeper
	step      Step
	from      []txmgr.Payer
	addresses []solana.PublicKey // the payers' addresses; only set when from is empty
	to        []solana.PublicKey
	plan      func(from, to []balance, price uint64) (moves []move, leftover uint64, short *Short)

	session Session
	// minContextSlot is the newest slot in which a sweep of the accounts landed. A balance that
	// was read at an earlier slot does not show that sweep, and the next plan would repeat it.
	minContextSlot uint64
	// refused are attempts that every endpoint refused. They are not sent again, and the run
	// waits until they expire.
	refused map[solana.Signature]bool
	// lastSent is when this run last sent each attempt.
	lastSent map[solana.Signature]time.Time
	// waitingFor is what the run waits for, and reportedAt is when it last logged that.
	waitingFor string
	reportedAt time.Time
	result     Result
}

func (r *run) payers() []solana.PublicKey {
	if len(r.from) == 0 {
		return r.addresses
	}
	keys := make([]solana.PublicKey, len(r.from))
	for i, k := range r.from {
		keys[i] = k.PublicKey()
	}
	return keys
}

// execute runs a step that moves lamports.
func (r *run) execute(ctx context.Context, lock []solana.PublicKey) (Result, error) {
	for _, to := range r.to {
		if slices.Contains(r.payers(), to) {
			return r.result, fmt.Errorf("%s is an old key and a new key: expected a new key that is not an old one", to)
		}
	}
	err := r.withLocks(ctx, lock, func(ctx context.Context) error {
		if err := r.resolveOpen(ctx); err != nil {
			return err
		}
		if r.step == StepAll {
			if err := r.drain(ctx); err != nil {
				return err
			}
		}
		if err := r.moveAll(ctx); err != nil || r.step != StepAll {
			return err
		}
		return r.completeAccounting(ctx)
	})
	return r.result, err
}

// wrapEnd turns an error into *Unfinished if ctx has ended. If ctx has not ended, the error stays
// unchanged.
func (r *run) wrapEnd(ctx context.Context, err error) error {
	var already *Unfinished
	if err == nil || ctx.Err() == nil || errors.As(err, &already) {
		return err
	}
	if r.waitingFor == "" {
		r.waitingFor = "its first step"
	}
	return &Unfinished{WaitingFor: r.waitingFor, Err: ctx.Err()}
}

// pause waits for one poll interval. It logs waitingFor when waitingFor has changed, and again
// every reportInterval while it stays the same.
func (r *run) pause(ctx context.Context, waitingFor string) error {
	if ctx.Err() != nil && r.waitingFor != "" {
		// The last call may have failed only because ctx ended, so the run keeps the earlier
		// waitingFor.
		return r.wrapEnd(ctx, ctx.Err())
	}
	if now := r.Now(); waitingFor != r.waitingFor || now.Sub(r.reportedAt) >= reportInterval {
		r.waitingFor, r.reportedAt = waitingFor, now
		r.Log.InfoContext(ctx, "sweep deferred", "for", waitingFor)
	}
	timer := time.NewTimer(r.Poll)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return &Unfinished{WaitingFor: waitingFor, Err: ctx.Err()}
	case <-timer.C:
		return nil
	}
}

// moveAll moves lamports until a plan from finalized balances has no more moves.
func (r *run) moveAll(ctx context.Context) error {
	for {
		price := r.price(ctx)
		commitment := onchain.Confirmed
		moves, leftover, short, err := r.planMoves(ctx, commitment, price)
		if err != nil {
			return err
		}
		if len(moves) == 0 {
			// A plan without moves ends the run only if it was made from finalized balances.
			commitment = onchain.Finalized
			var final []move
			if final, leftover, short, err = r.planMoves(ctx, commitment, price); err != nil {
				return err
			}
			if len(final) > 0 {
				if err := r.pause(ctx, "balances to be finalized"); err != nil {
					return err
				}
				continue
			}
		}
		if short != nil {
			return short
		}
		if r.result.Left = leftover; len(moves) == 0 {
			return nil
		}
		if err := r.launchAll(ctx, moves); err != nil {
			return err
		}
		if err := r.resolveOpen(ctx); err != nil {
			return err
		}
		if r.result.Failed >= maxFailures {
			return fmt.Errorf("%d transactions failed on the chain: check them in an explorer before running it again", r.result.Failed)
		}
	}
}

// planMoves reads the balances and plans the moves.
func (r *run) planMoves(ctx context.Context, c onchain.Commitment, price uint64) ([]move, uint64, *Short, error) {
	from, err := r.balances(ctx, r.payers(), c)
	if err != nil {
		return nil, 0, nil, err
	}
	to, err := r.balances(ctx, r.to, c)
	if err != nil {
		return nil, 0, nil, err
	}
	moves, leftover, short := r.plan(from, to, price)
	return moves, leftover, short, nil
}

// balances reads the lamports of accounts, each with a call of its own: a second endpoint
// confirms that an account is missing only if the call asks for a single account. balances
// retries until there is an answer, because a failed read does not mean an empty account.
func (r *run) balances(ctx context.Context, keys []solana.PublicKey, c onchain.Commitment) ([]balance, error) {
	out := make([]balance, len(keys))
	for i := 0; i < len(keys); {
		accounts, _, err := r.Chain.Accounts(ctx, keys[i:i+1], c, r.minContextSlot)
		if err != nil {
			if err := r.pauseIfUnavailable(ctx, "read a balance", err); err != nil {
				return nil, err
			}
			continue
		}
		out[i].key = keys[i]
		if accounts[0] != nil {
			out[i].lamports = accounts[0].Lamports
		}
		i++
	}
	return out, nil
}

// pauseIfUnavailable waits if err only means that the chain or a signer did not answer, and returns
// nil, so that the caller tries again. It returns any other error.
func (r *run) pauseIfUnavailable(ctx context.Context, what string, err error) error {
	switch {
	case errors.Is(err, txmgr.ErrSignerUnavailable):
		return r.pause(ctx, fmt.Sprintf("a signer, to %s (%v)", what, err))
	case ctx.Err() != nil: // the call may have failed only because of that
		return r.pause(ctx, fmt.Sprintf("an answer, to %s (%v)", what, err))
	}
	if !errors.Is(err, onchain.ErrUnavailable) {
		return fmt.Errorf("%s: %w", what, err)
	}
	return r.pause(ctx, fmt.Sprintf("the chain, to %s (%v)", what, err))
}

// price returns the current price of a compute unit, in micro-lamports. When the chain does not
// answer, price returns the lowest allowed price, so that the run goes on.
func (r *run) price(ctx context.Context) uint64 {
	fees, err := r.Chain.PriorityFees(ctx, slices.Concat(r.payers(), r.to))
	if err != nil {
		fees = nil
	}
	return r.Price.Of(fees)
}
