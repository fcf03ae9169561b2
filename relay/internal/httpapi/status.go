package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// GetStatus returns the state of a submission. The status of a swap's first leg includes the
// second leg, whose own row is not public.
func (a *api) GetStatus(w http.ResponseWriter, r *http.Request, id uuid.UUID) {
	ctx, cancel := a.call(r.Context())
	defer cancel()
	s, err := a.Submissions.Get(ctx, id)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	if s.Kind == submission.KindSwapExecution {
		a.refuse(w, r, refusal.New(refusal.NotFound, "no submission has this id: follow a swap by the request_id in the answer of POST /transact_swap"))
		return
	}
	data, err := submissionStatus(s)
	if err == nil && s.Kind == shieldpool.KindSwap {
		err = a.addSwap(&data, s)
	}
	if err != nil {
		a.fail(w, r, err)
		return
	}
	a.answer(w, r, http.StatusOK, openapi.StatusAnswer{Success: true, Data: data})
}

func statusPath(id uuid.UUID) string { return "/status/" + id.String() }

func submissionStatus(s *submission.Submission) (openapi.SubmissionStatus, error) {
	var data openapi.SubmissionStatus
	if s.State == submission.Failed {
		if s.Failure == nil {
			return data, errors.New("a failed submission has no reason")
		}
		// The failure's fields have the same names as the answer's fields. Fields that
		// are set below overwrite them.
		fields, err := json.Marshal(s.Failure.Fields)
		if err != nil {
			return data, fmt.Errorf("encode the fields of a failure: %w", err)
		}
		if err := json.Unmarshal(fields, &data); err != nil {
			return data, fmt.Errorf("decode the fields of a failure: %w", err)
		}
		message, code := s.Failure.Message, string(s.Failure.Code)
		data.Error, data.ErrorCode = &message, &code
	}
	data.RequestID, data.Status = s.ID, openapi.JobStatus(s.State)
	data.TxID = signatureOf(s)
	data.SolanaSignature = data.TxID
	data.Slot, data.LeafIndices, data.Root = slotOf(s), leafIndices(s), rootOf(s)
	data.Finalized, data.RolledBack = s.Finalized, s.RolledBack
	data.CreatedAt = s.CreatedAt.UTC()
	data.CompletedAt = nil
	if s.CompletedAt != nil && s.Done() {
		at := s.CompletedAt.UTC()
		data.CompletedAt = &at
	}
	return data, nil
}
