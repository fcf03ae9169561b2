package httpapi

import (
	"encoding/hex"
	"errors"
	"net/http"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/openapi"
)

// Transact relays a submission and waits for its outcome as the client prefers.
func (a *api) Transact(w http.ResponseWriter, r *http.Request, params openapi.TransactParams) {
	prefer := a.parsePrefer(params.Prefer)
	s, waitLeft, err := a.submit(w, r, decodeSubmission, params.IdempotencyKey, false, prefer.wait)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	if prefer.applied != "" {
		w.Header().Set("Preference-Applied", prefer.applied)
	}
	a.answerSubmission(w, r, a.awaitOutcome(r, s, waitLeft))
}

// Withdraw relays a withdrawal without waiting for its outcome. Only a repeated request waits; see
// awaitOutcome.
func (a *api) Withdraw(w http.ResponseWriter, r *http.Request, params openapi.WithdrawParams) {
	s, _, err := a.submit(w, r, decodeSubmission, params.IdempotencyKey, true, 0)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	s = a.awaitOutcome(r, s, 0)
	if s.Repeated && s.State == submission.Failed {
		a.fail(w, r, failure(s))
		return
	}
	id := idOf(s)
	location := statusPath(id)
	message := "withdrawal accepted; follow it at GET " + location
	if id != s.ID {
		message = "this withdrawal has landed before: POST /transact answers it with its outcome"
	}
	w.Header().Set("Location", location)
	a.answer(w, r, http.StatusAccepted, openapi.WithdrawAnswer{
		Success: true,
		Data:    openapi.QueuedWithdrawal{RequestID: id, Status: openapi.WithdrawAnswerDataStatusQueued, Message: message},
	})
}

func (a *api) answerSubmission(w http.ResponseWriter, r *http.Request, s *submission.Submission) {
	status := http.StatusAccepted
	switch s.State {
	case submission.Failed:
		a.fail(w, r, failure(s))
		return
	case submission.Completed:
		status = http.StatusOK
	default:
		w.Header().Set("Location", statusPath(idOf(s)))
	}
	result := openapi.SubmissionResult{
		RequestID: idOf(s), Status: openapi.JobStatus(s.State),
		Slot: slotOf(s), LeafIndices: leafIndices(s), Root: rootOf(s),
	}
	result.Signature = signatureOf(s)
	result.TxID, result.SolanaSignature = result.Signature, result.Signature
	a.answer(w, r, status, openapi.SubmissionAnswer{Success: true, RequestID: idOf(s), Signature: result.Signature, Data: result})
}

// failure is the refusal in the answer for a failed submission.
func failure(s *submission.Submission) error {
	if s.Failure == nil {
		return errors.New("a failed submission has no reason")
	}
	return withRolledBack(s.Failure.With("request_id", s.ID.String()), s)
}

// Signature, slot, leaf indices and root are shown only for a completed submission. Before that,
// any attempt may still fail to land.

func signatureOf(s *submission.Submission) *string {
	if s.State != submission.Completed || s.Signature == nil {
		return nil
	}
	text := s.Signature.String()
	return &text
}

func slotOf(s *submission.Submission) *int64 {
	if s.State != submission.Completed {
		return nil
	}
	slot := int64(s.Slot) //nolint:gosec // slots stay far below 2^63
	return &slot
}

func leafIndices(s *submission.Submission) []int64 {
	indices := []int64{}
	if s.State == submission.Completed {
		for _, i := range s.LeafIndices {
			indices = append(indices, int64(i)) //nolint:gosec // the tree has 2^32 leaves
		}
	}
	return indices
}

func rootOf(s *submission.Submission) *string {
	if s.State != submission.Completed || s.Root == nil {
		return nil
	}
	text := hex.EncodeToString(s.Root[:])
	return &text
}
