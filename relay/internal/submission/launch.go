package submission

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// reservation is what a payer keeps for an attempt.
type reservation struct {
	signature solana.Signature
	payer     solana.PublicKey
	lamports  uint64
}

// releaseReservations ends the reservations of attempts that are over.
func (e *Engine) releaseReservations(c *Claimed, over func(solana.Signature) bool) {
	var left []reservation
	for _, r := range c.reserved {
		if over(r.signature) {
			e.Payers.Release(r.payer, r.lamports)
		} else {
			left = append(left, r)
		}
	}
	c.reserved = left
}

// launch makes a new attempt, nothing of the submission being able to land: a
// payer that can pay, a simulation, and then the signature, committed before
// the first send. Without follow and error it would fail, which p then tells.
func (e *Engine) launch(ctx context.Context, c *Claimed, p *progress, d *Draft) (follow bool, err error) {
	price := e.price.current(ctx, e.Chain, e.Pool)
	cost := d.Rent + shieldpool.SignatureFee + shieldpool.Compute{Limit: e.compute.limit(computeKind(c, d.Purpose)), Price: price}.PriorityFee()
	// What a swap holds is the recipient's: no cap stands between its legs, so that the
	// caps are asked for both with the first.
	var ahead uint64
	if c.Kind == shieldpool.KindSwap {
		ahead = e.secondLegCost(price)
	}
	if c.Kind != KindSwapExecution {
		if err := e.Spending.Allow(ctx, c.Kind == shieldpool.KindTransfer, cost+ahead); err != nil {
			return false, heldByRefusal(c, err)
		}
	}
	begun := c.Kind == KindSwapExecution // the payers' least balance is there for it
	payer, err := e.Payers.Pick(ctx, cost+d.UpfrontCost, begun)
	if err != nil {
		return false, heldByRefusal(c, err)
	}
	keep := reservation{payer: payer.PublicKey(), lamports: cost + d.UpfrontCost}
	end := e.Payers.Cancel
	defer func() {
		if !follow {
			end(keep.payer, keep.lamports)
		}
	}()
	limit, ok, err := e.simulate(ctx, c, p, d, payer.PublicKey())
	if err != nil || !ok {
		return false, err
	}
	a, err := e.sign(ctx, c, d, payer, shieldpool.Compute{Limit: limit, Price: price})
	if err != nil {
		return false, err
	}
	a.SecondLegCost = ahead
	end = e.Payers.Release // an error may have lost the answer alone: a new owner then sends it
	if err := e.Store.RecordAttempt(ctx, c.Lease(), *a); err != nil {
		return false, err
	}
	if e.submitOutage() == nil {
		e.resumeQueue(ctx)
	}
	keep.signature, c.since = a.Signature, e.Now()
	c.Live, c.reserved, c.Tries, c.Hold = append(c.Live, *a), append(c.reserved, keep), 0, ""
	e.Observer.Attempt("signed")
	e.send(ctx, c, &c.Live[len(c.Live)-1])
	return true, nil
}

// secondLegCost is what a swap's second leg may cost at a price: an execution that makes the
// recipient's token account. One that costs more brings back the rent of the state.
func (e *Engine) secondLegCost(price uint64) (lamports uint64) {
	limit := e.compute.limit(computeKind(nil, PurposeExecute))
	return shieldpool.TokenAccountRent + shieldpool.SignatureFee + shieldpool.Compute{Limit: limit, Price: price}.PriorityFee()
}

// computeKind is the shape of a transaction, as compute limits are kept.
func computeKind(c *Claimed, p Purpose) shieldpool.Kind {
	if p == PurposeTransact {
		return c.Kind
	}
	return shieldpool.Kind(p)
}

// transact drafts the client's own call.
func (e *Engine) transact(c *Claimed) *Draft {
	return &Draft{Purpose: PurposeTransact, Rent: c.Call.Rent(), Build: func(payer solana.PublicKey, compute shieldpool.Compute, hash solana.Hash) (*solana.Transaction, error) {
		return e.Pool.Transaction(payer, c.Call, compute, hash, e.Table)
	}}
}

// simulate runs the unsigned transaction on the RPC: what it refuses fails
// without a signature that could ever land. It gives the compute limit; ok is
// false when the transaction would fail, which p then tells.
func (e *Engine) simulate(ctx context.Context, c *Claimed, p *progress, d *Draft, payer solana.PublicKey) (limit uint32, ok bool, err error) {
	began := e.Now()
	raw, err := unsigned(d, payer)
	if err != nil {
		return 0, false, err
	}
	sim, err := e.Chain.Simulate(ctx, raw, true, p.minContextSlot)
	if err != nil {
		return 0, false, e.unreachable(c, err)
	}
	e.Observer.Stage("simulate", e.Now().Sub(began))
	if sim.Err == nil {
		largest := e.compute.observe(computeKind(c, d.Purpose), sim.UnitsConsumed)
		if d.Purpose == PurposeExecute { // routes differ: one of many units must not make all dearer
			return limitOf(sim.UnitsConsumed + sim.UnitsConsumed/10), true, nil
		}
		return largest, true, nil
	}
	if sim.Unverified {
		return 0, false, e.unreachable(c, errUnverified("simulateTransaction"))
	}
	p.failure, p.class, p.minContextSlot = sim.Err, e.classOf(d.Purpose, sim.Err), max(p.minContextSlot, sim.Slot)
	switch p.class {
	case shieldpool.ClassSpent, shieldpool.ClassStaleProof:
		p.notes, p.root = notesUnread, rootUnread
	case shieldpool.ClassFeePayerEmpty:
		e.Payers.MarkRefused(payer, sim.Err)
	case shieldpool.ClassRaiseCompute:
		// The simulation had all that a transaction may have: it will never run.
		p.class = shieldpool.ClassBadInput
	default:
	}
	return 0, false, nil
}

// unsigned is a draft's transaction as it is simulated.
func unsigned(d *Draft, payer solana.PublicKey) ([]byte, error) {
	tx, err := d.Build(payer, shieldpool.Compute{Limit: maxComputeUnits}, solana.Hash{})
	if err != nil {
		return nil, err
	}
	tx.Signatures = make([]solana.Signature, tx.Message.Header.NumRequiredSignatures)
	raw, err := tx.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("encode transaction: %w", err)
	}
	return raw, nil
}

// tryCall simulates a call: nil when it would succeed.
func (e *Engine) tryCall(ctx context.Context, call *shieldpool.Call) (failure *shieldpool.TransactionError, err error) {
	draft := e.transact(&Claimed{Submission: &Submission{Call: call}})
	for _, payer := range e.Payers.Keys() {
		raw, err := unsigned(draft, payer)
		if err != nil {
			return nil, err
		}
		sim, err := e.Chain.Simulate(ctx, raw, true, 0)
		if err != nil {
			return nil, err
		}
		if sim.Unverified {
			return nil, errUnverified("simulateTransaction")
		}
		if failure = sim.Err; failure == nil || e.classOf(PurposeTransact, failure) != shieldpool.ClassFeePayerEmpty {
			break
		}
	}
	return failure, nil
}

func (e *Engine) sign(ctx context.Context, c *Claimed, d *Draft, payer Payer, compute shieldpool.Compute) (*Attempt, error) {
	began := e.Now()
	hash, err := e.Chain.LatestBlockhash(ctx)
	if err != nil {
		return nil, e.unreachable(c, err)
	}
	tx, err := d.Build(payer.PublicKey(), compute, hash.Hash)
	if err != nil {
		return nil, err
	}
	message, err := tx.Message.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	sig, err := payer.Sign(message)
	if err != nil {
		return nil, fmt.Errorf("sign transaction: %w", err)
	}
	tx.Signatures = []solana.Signature{sig}
	raw, err := tx.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("encode transaction: %w", err)
	}
	e.Observer.Stage("sign", e.Now().Sub(began))
	fee := shieldpool.SignatureFee + compute.PriorityFee()
	return &Attempt{
		Signature: sig, Raw: raw, FeePayer: payer.PublicKey(), Blockhash: hash.Hash, BlockhashSlot: hash.Slot,
		LastValidBlockHeight: hash.LastValidBlockHeight, CreatedAt: began, Purpose: d.Purpose, Cost: d.Rent + fee, Fee: fee,
	}, nil
}

// send forwards an attempt for the first time, a client's call with preflight. Whatever comes
// back, the attempt is committed and lives until it is dead: a timeout says
// nothing, and a refusal only that these endpoints did not forward it.
func (e *Engine) send(ctx context.Context, c *Claimed, a *Attempt) {
	if c.accepted != (time.Time{}) {
		e.Observer.Stage("first_send", e.Now().Sub(c.accepted))
		c.accepted = time.Time{}
	}
	// What preflight refuses may not be signed anew before it is dead, which takes
	// longer than a swap has; what fails on the chain is settled within seconds. A
	// settlement was simulated a moment ago, so it goes without preflight.
	err := e.broadcast(ctx, a, a.Purpose == PurposeTransact)
	var refused *ledger.SendError
	if !errors.As(err, &refused) {
		if err != nil {
			e.Log.InfoContext(ctx, "send timed out; outcome unknown", "request_id", c.requestID(), "error", err)
		}
		return
	}
	e.Observer.Attempt("refused")
	e.Log.InfoContext(ctx, "attempt rejected by preflight", "request_id", c.requestID(), "error", err)
	class := shieldpool.ClassTransient
	if refused.Err != nil {
		class = e.classOf(a.Purpose, refused.Err)
		e.reportFailure(c, a, class, refused.Err)
	}
	if !permanent(class) {
		return
	}
	// Sending it again would only buy a failure, so it is left to die, by whoever holds the row then.
	a.Rejected = true
	if err := e.Store.MarkAttemptRejected(ctx, c.Lease(), a.Signature); err != nil {
		e.Log.DebugContext(ctx, "recording a preflight rejection failed", "request_id", c.ID, "error", err)
	}
}

// broadcast sends bytes that are committed. Once begun a send goes on to its own end:
// neither a shutdown nor a step that ran out of time may cut it off.
func (e *Engine) broadcast(ctx context.Context, a *Attempt, first bool) error {
	err := e.Chain.Send(context.WithoutCancel(ctx), a.Raw, first, a.BlockhashSlot)
	e.outage.observe(e.Now(), err)
	return err
}

// permanent reports whether a transaction that fails so will fail so again.
func permanent(class shieldpool.Class) bool {
	switch class {
	case shieldpool.ClassStaleProof, shieldpool.ClassSpent, shieldpool.ClassBadInput, shieldpool.ClassPolicy,
		shieldpool.ClassRecipientRent, shieldpool.ClassBug, shieldpool.ClassRaiseCompute:
		return true
	default:
		return false
	}
}
