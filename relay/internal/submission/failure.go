package submission

import (
	"context"
	"fmt"

	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// lagTries is how many steps a root that the ring holds may be unknown to the
// program, about a minute with the pauses between them: no node that is fit for
// use lags longer.
const lagTries = 10

// afterFailure acts on a transaction error while no attempt can land: the
// submission fails for good, turns out to have landed, is held, or (unsettled)
// may be tried again.
func (e *Engine) afterFailure(ctx context.Context, c *Claimed, txErr *shieldpool.TransactionError) (settlement, error) {
	class := e.Pool.Profile.ClassOfTransaction(txErr, shieldpool.PoolInstruction)
	switch class {
	case shieldpool.ClassTransient, shieldpool.ClassBlockhash, shieldpool.ClassAlreadyProcessed, shieldpool.ClassSwapNotReady:
		return unsettled, nil
	case shieldpool.ClassRaiseCompute:
		e.compute.raise(c.Kind)
		return unsettled, nil
	case shieldpool.ClassOperator, shieldpool.ClassNotInitialised, shieldpool.ClassFeePayerEmpty:
		return unsettled, &held{reason: string(class), cause: txErr}
	case shieldpool.ClassStaleProof, shieldpool.ClassSpent:
		return e.afterSpentOrStale(ctx, c, txErr)
	case shieldpool.ClassRecipientRent:
		return failedForGood, e.fail(ctx, c, recipientBelowRent(e.Pool.Profile.RecipientMinimum).Because(txErr))
	case shieldpool.ClassBug:
		e.Log.ErrorContext(ctx, "Built a transaction that the network does not take", "request_id", c.ID, "error", txErr)
		return failedForGood, e.fail(ctx, c, refusal.New(refusal.Internal, "the relay built a transaction that the network does not take: this is the relay's fault, and no note was spent; tell its operator").Because(txErr))
	default:
		return failedForGood, e.fail(ctx, c, e.programRefusal(txErr))
	}
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

// afterSpentOrStale tells the three stories apart that look alike: ours landed
// and its root has left since, somebody else spent the note, or the root is old.
func (e *Engine) afterSpentOrStale(ctx context.Context, c *Claimed, txErr *shieldpool.TransactionError) (settlement, error) {
	seen, err := e.State.Inspect(ctx, c.Call.Inputs, c.Call.Recipient)
	if err != nil {
		return unsettled, holdUnready(err)
	}
	for i, spent := range seen.Spent {
		if !spent {
			continue
		}
		if _, err := e.spent(ctx, c, i); err != nil {
			return unsettled, err
		}
		if c.State == Completed {
			return alive, nil
		}
		return failedForGood, nil
	}
	if e.Pool.Profile.ClassOf(txErr.Custom) == shieldpool.ClassSpent {
		// The program says spent and the accounts say not: the two reads are of different slots.
		return unsettled, nil
	}
	snap, err := e.State.Tree(ctx, 0)
	if err != nil {
		return unsettled, holdUnready(err)
	}
	if snap.Checked && snap.Tree.Headroom(c.Call.Inputs.Root) >= 0 && c.Tries < lagTries {
		// The program's verdict came from a node that has not seen the root yet.
		return unsettled, nil
	}
	return failedForGood, e.fail(ctx, c, staleRoot(c.Call.Inputs.Root, snap.Tree.Root).Because(txErr))
}

// programRefusal is what the client hears of a permanent refusal by the program.
func (e *Engine) programRefusal(txErr *shieldpool.TransactionError) *refusal.Refusal {
	name := e.Pool.Profile.ErrorName(txErr.Custom)
	if txErr.Custom == shieldpool.CodeProofInvalid || txErr.Custom == shieldpool.CodeProofVerificationFailed {
		return refusal.New(refusal.ProofInvalid, "the pool's program does not take the proof (%s): prove again with the pool's circuit and key", name).Because(txErr)
	}
	return refusal.New(refusal.ProgramError, "the pool's program refuses the transaction for good with error 0x%x %s: see the program's documentation for this code; sending it again does not help", txErr.Custom, name).
		With("program_code", fmt.Sprintf("0x%x", txErr.Custom)).With("program_error", name).Because(txErr)
}
