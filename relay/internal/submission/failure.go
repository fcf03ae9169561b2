package submission

import (
	"context"
	"fmt"

	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// classRefusal is what the client hears of a failure that is final by its class.
func (e *Engine) classRefusal(ctx context.Context, c *Claimed, p *progress) *refusal.Refusal {
	switch p.class {
	case shieldpool.ClassRecipientRent:
		return recipientBelowRent(e.Pool.Profile.RecipientMinimum).Because(p.cause())
	case shieldpool.ClassBug:
		e.Log.ErrorContext(ctx, "built a transaction that the network does not accept", "request_id", c.ID, "error", p.cause())
		return refusal.New(refusal.Internal, "the relay built a transaction that the network does not take: this is the relay's fault, and no note was spent; tell its operator").Because(p.cause())
	default:
		return e.programRefusal(p.failure)
	}
}

// programRefusal is what the client hears of a permanent refusal by the program.
func (e *Engine) programRefusal(txErr *shieldpool.TransactionError) *refusal.Refusal {
	name := e.Pool.Profile.ErrorName(txErr.Custom)
	if refusesProof(txErr) {
		return refusal.New(refusal.ProofInvalid, "the pool's program does not take the proof (%s): prove again with the pool's circuit and key", name).Because(txErr)
	}
	return refusal.New(refusal.ProgramError, "the pool's program refuses the transaction for good with error 0x%x %s: see the program's documentation for this code; sending it again does not help", txErr.Custom, name).
		With("program_code", fmt.Sprintf("0x%x", txErr.Custom)).With("program_error", name).Because(txErr)
}

// refusesProof reports whether the program's refusal is one of the proof itself.
func refusesProof(txErr *shieldpool.TransactionError) bool {
	return txErr.Custom == shieldpool.CodeProofInvalid || txErr.Custom == shieldpool.CodeProofVerificationFailed
}
