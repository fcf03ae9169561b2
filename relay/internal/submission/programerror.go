package submission

import (
	"context"
	"fmt"

	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// afterClass returns the next step after a failure of f.class, or stepSign if there was none. The
// notes are unspent, and the root is not known to be gone.
func afterClass(f *facts) step {
	switch f.class {
	case "":
		return stepSign
	case shieldpool.ClassTransient, shieldpool.ClassBlockhash, shieldpool.ClassAlreadyProcessed,
		shieldpool.ClassSwapNotReady, shieldpool.ClassRaiseCompute, shieldpool.ClassFeePayerEmpty, shieldpool.ClassSpent:
		// ClassFeePayerEmpty: another payer may have lamports; if none has, the next try pauses
		// the queue. ClassSpent: the simulation ran at another slot than the read of the accounts,
		// which shows the notes as unspent.
		return stepRetry
	case shieldpool.ClassStaleProof:
		if f.root == rootUnverifiable || f.lagRuledOut {
			return stepFailRoot
		}
		return stepRetry
	case shieldpool.ClassOperator, shieldpool.ClassNotInitialised:
		return stepHold
	default:
		return stepFailClass
	}
}

// classRefusal returns the refusal for a failure whose class is permanent.
func (h *Handler) classRefusal(ctx context.Context, s *Submission, p *progress) *refusal.Refusal {
	switch p.class {
	case shieldpool.ClassRecipientRent:
		return RecipientBelowRent(h.RecipientMinimum()).Because(p.cause())
	case shieldpool.ClassBug:
		h.Log.ErrorContext(ctx, "built a transaction that the network does not accept", "request_id", s.ID, "error", p.cause())
		return refusal.New(refusal.Internal, "the relay built a transaction that the network refuses: this is the relay's fault, and no note was spent; report it to its operator").Because(p.cause())
	default:
		return h.programRefusal(p.failure)
	}
}

// programRefusal returns the refusal for a permanent error of the program.
func (h *Handler) programRefusal(txErr *shieldpool.TransactionError) *refusal.Refusal {
	name := h.Pool.Profile.ErrorName(txErr.Custom)
	if refusesProof(txErr) {
		return refusal.New(refusal.ProofInvalid, "the pool's program refuses the proof (%s): prove again with the pool's circuit and key", name).Because(txErr)
	}
	return refusal.New(refusal.ProgramError, "the pool's program refuses the transaction for good with error 0x%x %s: see the program's documentation for this code; sending it again does not help", txErr.Custom, name).
		With("program_code", fmt.Sprintf("0x%x", txErr.Custom)).With("program_error", name).Because(txErr)
}

// RecipientBelowRent returns the refusal of a withdrawal after which the recipient would have fewer
// lamports than least.
func RecipientBelowRent(least uint64) *refusal.Refusal {
	return refusal.New(refusal.RecipientBelowRent,
		"the recipient would hold less than %d lamports, the least that the network and the program let it hold: withdraw more, or to a wallet that holds more", least)
}
