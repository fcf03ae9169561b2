package submission

import (
	"context"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// TryCall simulates a submission's call. If the simulation succeeds, why is nil. If it fails
// permanently, why is the refusal, and badProof is true if the program refuses the proof itself. An
// error means that nothing is decided, because the chain does not answer or the failure is
// temporary.
func (h *Handler) TryCall(ctx context.Context, s *Submission) (why *refusal.Refusal, badProof bool, err error) {
	draft, err := h.draft(s)
	if err != nil {
		return nil, false, err
	}
	failure, err := h.Manager.SimulateDraft(ctx, draft, 0)
	if err != nil || failure == nil {
		return nil, false, err
	}
	if c := failure.Class; c == shieldpool.ClassSpent || c == shieldpool.ClassStaleProof || !txmgr.IsPermanent(c) {
		return nil, false, failure.Err
	}
	p := &progress{facts: facts{class: failure.Class}, failure: failure.Err}
	return h.classRefusal(ctx, s, p), refusesProof(failure.Err), nil
}

// refusesProof reports whether the program's refusal concerns the proof itself.
func refusesProof(txErr *shieldpool.TransactionError) bool {
	return txErr.Custom == shieldpool.CodeProofInvalid || txErr.Custom == shieldpool.CodeProofVerificationFailed
}
