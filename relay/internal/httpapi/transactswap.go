package httpapi

import (
	"net/http"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/refusal"
)

// TransactSwap relays a swap, and waits for its first leg as the client prefers.
func (a *api) TransactSwap(w http.ResponseWriter, r *http.Request, params openapi.TransactSwapParams) {
	if a.Info.Swaps == nil {
		a.refuse(w, r, refusal.New(refusal.NotAvailable, "this relay does not swap: withdraw with POST /transact or POST /withdraw, or use a relay that does"))
		return
	}
	prefer := a.parsePrefer(params.Prefer)
	s, waitLeft, err := a.submit(w, r, decodeSwap, params.IdempotencyKey, true, prefer.wait)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	if prefer.applied != "" {
		w.Header().Set("Preference-Applied", prefer.applied)
	}
	a.answerSwap(w, r, a.awaitOutcome(r, s, waitLeft))
}

// answerSwap answers 200 once the first leg is confirmed, unless the swap was
// refunded.
func (a *api) answerSwap(w http.ResponseWriter, r *http.Request, s *submission.Submission) {
	switch {
	case s.State == submission.Failed:
		a.fail(w, r, failure(s))
		return
	case isRefunded(s):
		ref := swapRefunded()
		if !s.Repeated {
			ref = ref.With("request_id", s.ID.String())
		}
		if signature := progressOf(s).RefundSignature; signature != nil {
			ref = ref.With("refund_signature", *signature)
		}
		a.refuse(w, r, ref)
		return
	}
	status := http.StatusAccepted
	if s.State == submission.Completed {
		status = http.StatusOK
	}
	w.Header().Set("Location", statusPath(idOf(s)))
	ids, err := a.swapIdentifiers(s)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	progress, signature := progressOf(s), signatureOf(s)
	a.answer(w, r, status, openapi.SwapAnswer{
		Success: true, RequestID: idOf(s), Signature: signature, SwapStatePda: ids.SwapStatePda, Nullifier: ids.Nullifier,
		Data: openapi.SwapResult{
			RequestID: idOf(s), Status: statusOf(s), Signature: signature, TxID: signature, SolanaSignature: signature,
			Slot: slotOf(s), LeafIndices: leafIndices(s), Root: rootOf(s),
			SwapStatePda: ids.SwapStatePda, Nullifier: ids.Nullifier,
			SwapPhase: progress.SwapPhase, SwapSignature: progress.SwapSignature, RefundSignature: progress.RefundSignature,
			SwapTimeoutSlot: progress.SwapTimeoutSlot, SwapWaits: progress.SwapWaits,
		},
	})
}
