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

const (
	// nullifierRent is what a nullifier's account costs, in lamports, never returned.
	nullifierRent = 890_880
	// signatureFee is the network's fee for one signature, in lamports.
	signatureFee = 5000
)

// rentOf is what the accounts cost that a call makes, in lamports.
func rentOf(in *shieldpool.PublicInputs) (lamports uint64) {
	for i := range in.Nullifiers {
		if in.HasNullifier(i) {
			lamports += nullifierRent
		}
	}
	return lamports
}

// reservation is what a payer keeps for an attempt.
type reservation struct {
	signature solana.Signature
	payer     solana.PublicKey
	lamports  uint64
}

// settlePayers ends the reservations of attempts that are over.
func (e *Engine) settlePayers(c *Claimed, over func(solana.Signature) bool) {
	var left []reservation
	for _, r := range c.reserved {
		if over(r.signature) {
			e.Payers.Settle(r.payer, r.lamports)
		} else {
			left = append(left, r)
		}
	}
	c.reserved = left
}

// launch makes a new attempt, nothing of the submission being able to land: a
// payer that can pay, a simulation, and then the signature, committed before
// the first send. Without follow and error it has learnt a fact that decides.
func (e *Engine) launch(ctx context.Context, c *Claimed, p *progress) (follow bool, err error) {
	price := e.price.current(ctx, e.Chain, e.Pool)
	cost := rentOf(c.Call.Inputs) + signatureFee + shieldpool.Compute{Limit: e.compute.limit(c.Kind), Price: price}.PriorityFee()
	if err := e.Spending.Allow(ctx, c.Kind == shieldpool.KindTransfer, cost); err != nil {
		return false, holdUnready(c, err)
	}
	payer, err := e.Payers.Pick(ctx, cost)
	if err != nil {
		return false, holdUnready(c, err)
	}
	keep := reservation{payer: payer.PublicKey(), lamports: cost}
	end := e.Payers.Cancel
	defer func() {
		if !follow {
			end(keep.payer, keep.lamports)
		}
	}()
	limit, ok, err := e.simulate(ctx, c, p, payer.PublicKey())
	if err != nil || !ok {
		return false, err
	}
	a, err := e.sign(ctx, c, payer, shieldpool.Compute{Limit: limit, Price: price})
	if err != nil {
		return false, err
	}
	end = e.Payers.Settle // an error may have lost the answer alone: an heir then sends it
	if err := e.Store.RecordAttempt(ctx, c.Lease(), *a); err != nil {
		return false, err
	}
	e.resumed(ctx)
	keep.signature = a.Signature
	c.Live, c.reserved, c.Tries, c.Hold = append(c.Live, *a), append(c.reserved, keep), 0, ""
	e.Observer.Attempt("signed")
	e.send(ctx, c, &c.Live[len(c.Live)-1])
	return true, nil
}

// simulate runs the unsigned transaction on the RPC: what it refuses fails
// without a signature that could ever land. It gives the compute limit of the
// submission's kind; ok is false when the transaction would fail, which p then tells.
func (e *Engine) simulate(ctx context.Context, c *Claimed, p *progress, payer solana.PublicKey) (limit uint32, ok bool, err error) {
	began := e.Now()
	tx, err := e.Pool.Transaction(payer, c.Call, shieldpool.Compute{Limit: maxComputeUnits}, solana.Hash{}, nil)
	if err != nil {
		return 0, false, err
	}
	tx.Signatures = make([]solana.Signature, tx.Message.Header.NumRequiredSignatures)
	raw, err := tx.MarshalBinary()
	if err != nil {
		return 0, false, fmt.Errorf("encode transaction: %w", err)
	}
	sim, err := e.Chain.Simulate(ctx, raw, true, p.floor)
	if err != nil {
		return 0, false, e.unreachable(c, err)
	}
	e.Observer.Stage("simulate", e.Now().Sub(began))
	if sim.Err == nil {
		return e.compute.saw(c.Kind, sim.UnitsConsumed), true, nil
	}
	p.failure, p.class, p.floor = sim.Err, e.classOf(sim.Err), max(p.floor, sim.Slot)
	switch p.class {
	case shieldpool.ClassSpent, shieldpool.ClassStaleProof:
		p.notes, p.root = notesUnread, rootUnread
	case shieldpool.ClassFeePayerEmpty:
		e.Payers.Refused(payer, sim.Err)
	case shieldpool.ClassRaiseCompute:
		// The simulation had all that a transaction may have: it will never run.
		p.class = shieldpool.ClassBadInput
	default:
	}
	return 0, false, nil
}

func (e *Engine) sign(ctx context.Context, c *Claimed, payer Payer, compute shieldpool.Compute) (*Attempt, error) {
	began := e.Now()
	hash, err := e.Chain.LatestBlockhash(ctx)
	if err != nil {
		return nil, e.unreachable(c, err)
	}
	tx, err := e.Pool.Transaction(payer.PublicKey(), c.Call, compute, hash.Hash, nil)
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
	return &Attempt{
		Signature: sig, Raw: raw, FeePayer: payer.PublicKey(), Blockhash: hash.Hash, BlockhashSlot: hash.Slot,
		LastValidBlockHeight: hash.LastValidBlockHeight, CreatedAt: began,
		Cost: rentOf(c.Call.Inputs) + signatureFee + compute.PriorityFee(),
	}, nil
}

// feeOf is the part of an attempt's cost that the network takes even when the
// transaction fails.
func feeOf(in *shieldpool.PublicInputs, a *Attempt) uint64 {
	return a.Cost - min(a.Cost, rentOf(in))
}

// send forwards an attempt for the first time, with preflight. Whatever comes
// back, the attempt is committed and lives until it is dead: a timeout says
// nothing, and a refusal only that these endpoints did not forward it.
func (e *Engine) send(ctx context.Context, c *Claimed, a *Attempt) {
	if c.accepted != (time.Time{}) {
		e.Observer.Stage("first_send", e.Now().Sub(c.accepted))
		c.accepted = time.Time{}
	}
	err := e.put(ctx, a, true)
	var refused *ledger.SendError
	if !errors.As(err, &refused) {
		if err != nil {
			e.Log.InfoContext(ctx, "Sent an attempt whose fate is unknown", "request_id", c.ID, "error", err)
		}
		return
	}
	e.Observer.Attempt("refused")
	e.Log.InfoContext(ctx, "Sent an attempt that preflight refused", "request_id", c.ID, "error", err)
	class := shieldpool.ClassTransient
	if refused.Err != nil {
		class = e.classOf(refused.Err)
		e.told(c, a, class, refused.Err)
	}
	if !permanent(class) {
		return
	}
	// Sending it again would only buy a failure, so it is left to die, by whoever holds the row then.
	a.Refused = true
	if err := e.Store.RefuseAttempt(ctx, c.Lease(), a.Signature); err != nil {
		e.Log.DebugContext(ctx, "Could not note a refusal", "request_id", c.ID, "error", err)
	}
}

// put sends bytes that are committed. Once begun a send goes on to its own end:
// neither a shutdown nor a step that ran out of time may cut it off.
func (e *Engine) put(ctx context.Context, a *Attempt, first bool) error {
	return e.Chain.Send(context.WithoutCancel(ctx), a.Raw, first, a.BlockhashSlot)
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
