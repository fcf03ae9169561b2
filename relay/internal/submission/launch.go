package submission

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// launch makes a new attempt: root and nullifiers once more, a fee payer that
// can pay, a simulation, and then the signature, committed before the first
// send. It reports whether there is something to watch.
func (e *Engine) launch(ctx context.Context, c *Claimed) (watch bool, err error) {
	if done, err := e.recheck(ctx, c); err != nil || done {
		return c.State == Completed, err
	}
	price := e.price.current(ctx, e.Chain, e.Pool)
	limit, verdict, err := e.simulate(ctx, c, price)
	if err != nil {
		return false, err
	}
	if verdict != nil {
		s, err := e.afterFailure(ctx, c, verdict)
		if err == nil && s == unsettled {
			err = fmt.Errorf("simulate transaction: %w", verdict)
		}
		return s == alive, err
	}
	compute := shieldpool.Compute{Limit: limit, Price: price}
	if err := e.payable(ctx, compute); err != nil {
		return false, err
	}
	a, err := e.sign(ctx, c, compute)
	if err != nil {
		return false, err
	}
	if err := e.Store.RecordAttempt(ctx, c.Lease(), *a); err != nil {
		return false, err
	}
	c.Live, c.refused = append(c.Live, *a), false
	e.Observer.Attempt("signed")
	e.send(ctx, c, a)
	return true, nil
}

// recheck looks at root and nullifiers again before anything is signed: the
// queue may have been long. done says that the submission has its outcome.
func (e *Engine) recheck(ctx context.Context, c *Claimed) (done bool, err error) {
	seen, err := e.State.Inspect(ctx, c.Call.Inputs, c.Call.Recipient)
	if err != nil {
		return false, holdUnready(err)
	}
	for i, spent := range seen.Spent {
		if spent {
			return e.spent(ctx, c, i)
		}
	}
	for _, age := range []time.Duration{e.Timing.Poll, 0} {
		snap, err := e.State.Tree(ctx, age)
		if err != nil {
			return false, holdUnready(err)
		}
		if !snap.Checked || snap.Tree.Headroom(c.Call.Inputs.Root) >= 0 {
			return false, nil
		}
		if age == 0 {
			return true, e.fail(ctx, c, staleRoot(c.Call.Inputs.Root, snap.Tree.Root))
		}
	}
	return false, nil
}

// spent settles a submission whose nullifier exists: ours landed, or the note is gone.
func (e *Engine) spent(ctx context.Context, c *Claimed, index int) (done bool, err error) {
	a, st, err := e.ownLanding(ctx, c)
	if err != nil {
		return false, err
	}
	if a != nil {
		return true, e.land(ctx, c, a.Signature, st)
	}
	return true, e.fail(ctx, c, nullifierSpent(index))
}

// holdUnready tells a pool or chain that is not ready from other errors: the
// submission waits, whatever the cause.
func holdUnready(err error) error {
	if r, ok := refusal.As(err); ok {
		return &held{reason: string(r.Code), cause: err}
	}
	return err
}

// payable holds the queue while the fee payer is dry.
func (e *Engine) payable(ctx context.Context, compute shieldpool.Compute) error {
	if err := e.FeePayer.Ready(ctx, nullifierRent+signatureFee+compute.PriorityFee()); err != nil {
		return holdUnready(err)
	}
	return nil
}

// simulate runs the unsigned transaction on the RPC: what it refuses fails
// without a signature that could ever land. It gives the compute limit of the
// submission's kind, or the error that the transaction would end in.
func (e *Engine) simulate(ctx context.Context, c *Claimed, price uint64) (limit uint32, verdict *shieldpool.TransactionError, err error) {
	began := e.Now()
	tx, err := e.Pool.Transaction(e.FeePayer.PublicKey(), c.Call, shieldpool.Compute{Limit: maxComputeUnits, Price: price}, solana.Hash{}, nil)
	if err != nil {
		return 0, nil, err
	}
	tx.Signatures = make([]solana.Signature, tx.Message.Header.NumRequiredSignatures)
	raw, err := tx.MarshalBinary()
	if err != nil {
		return 0, nil, fmt.Errorf("encode transaction: %w", err)
	}
	sim, err := e.Chain.Simulate(ctx, raw, true)
	if err != nil {
		return 0, nil, err
	}
	e.Observer.Stage("simulate", e.Now().Sub(began))
	if sim.Err != nil {
		return 0, sim.Err, nil
	}
	return e.compute.saw(c.Kind, sim.UnitsConsumed), nil, nil
}

func (e *Engine) sign(ctx context.Context, c *Claimed, compute shieldpool.Compute) (*Attempt, error) {
	began := e.Now()
	hash, err := e.Chain.LatestBlockhash(ctx)
	if err != nil {
		return nil, err
	}
	payer := e.FeePayer.PublicKey()
	tx, err := e.Pool.Transaction(payer, c.Call, compute, hash.Hash, nil)
	if err != nil {
		return nil, err
	}
	message, err := tx.Message.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	sig, err := e.FeePayer.Sign(message)
	if err != nil {
		return nil, fmt.Errorf("sign transaction: %w", err)
	}
	tx.Signatures = []solana.Signature{sig}
	raw, err := tx.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("encode transaction: %w", err)
	}
	e.Observer.Stage("sign", e.Now().Sub(began))
	return &Attempt{
		Signature: sig, Raw: raw, FeePayer: payer, Blockhash: hash.Hash, BlockhashSlot: hash.Slot,
		LastValidBlockHeight: hash.LastValidBlockHeight, CreatedAt: began,
	}, nil
}

// send forwards an attempt for the first time, with preflight. Whatever comes
// back, the attempt is committed and lives until it is dead: a timeout says
// nothing, and a refusal only that this endpoint did not forward it.
func (e *Engine) send(ctx context.Context, c *Claimed, a *Attempt) {
	err := e.put(ctx, a, true)
	var refused *ledger.SendError
	switch {
	case err == nil:
	case errors.As(err, &refused):
		c.refused = permanent(e.Pool.Profile.ClassOfTransaction(refused.Err, shieldpool.PoolInstruction))
		e.Observer.Attempt("refused")
		e.Log.InfoContext(ctx, "Sent an attempt that preflight refused", "request_id", c.ID, "error", err)
	default:
		e.Log.InfoContext(ctx, "Sent an attempt whose fate is unknown", "request_id", c.ID, "error", err)
	}
}

// put sends bytes that are committed. Once begun a send goes on to its own end:
// neither a shutdown nor a step that ran out of time may cut it off.
func (e *Engine) put(ctx context.Context, a *Attempt, preflight bool) error {
	return e.Chain.Send(context.WithoutCancel(ctx), a.Raw, preflight, a.BlockhashSlot)
}
