package trade

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/openapi"
)

// Relay is a client of a relay with swaps.
type Relay struct {
	Client openapi.ClientWithResponsesInterface
	// Poll is the interval between two polls.
	Poll time.Duration
}

// unexpected is the error of an answer without an execution or a refund, after which Follow
// and Submit give up: a refusal, an unknown swap or a failed first leg.
func unexpected(call string, status int, body []byte) error {
	return fmt.Errorf("%s answered %d: %s", call, status, body)
}

// Submit posts a swap and waits for the relay's answer. The answer is about the first
// leg, which may be unfinished; Follow waits for the end of the swap.
func (r *Relay) Submit(ctx context.Context, request openapi.TransactSwapRequest) (*openapi.SwapAnswer, error) {
	const call = "POST " + contract.TransactSwapPath
	answer, err := r.Client.TransactSwapWithResponse(ctx, nil, request)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", call, withoutURL(err))
	}
	switch {
	case answer.JSON200 != nil:
		return answer.JSON200, nil
	case answer.JSON202 != nil:
		return answer.JSON202, nil
	}
	return nil, unexpected(call, answer.StatusCode(), answer.Body)
}

// Follow polls a swap until it is executed or refunded, finalized or not, and returns the
// last status. It calls changed with the first status and with each later status that
// differs in status, phase or reason to wait. It polls again after a missing answer, a 429
// and a 5xx. It fails if the first leg failed, the swap is unknown, or ctx ends.
func (r *Relay) Follow(ctx context.Context, id uuid.UUID, changed func(*openapi.SubmissionStatus)) (*openapi.SubmissionStatus, error) {
	tick := time.NewTicker(r.Poll)
	defer tick.Stop()
	var last reported
	for {
		status, err := r.poll(ctx, id)
		if err != nil {
			return nil, err
		}
		if status != nil {
			if current := reportedOf(status); current != last {
				last = current
				changed(status)
			}
			if Executed(status) || Refunded(status) {
				return status, nil
			}
		}
		select {
		case <-ctx.Done():
			return status, fmt.Errorf("follow a swap: %w", context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// Executed reports whether a swap has paid the recipient's token account.
func Executed(s *openapi.SubmissionStatus) bool {
	return s.Status == openapi.JobStatusCompleted && s.SwapPhase != nil && *s.SwapPhase == openapi.SwapPhaseExecuted
}

// Refunded reports whether a swap has returned its lamports to the recipient's
// wallet.
func Refunded(s *openapi.SubmissionStatus) bool {
	return s.Status == openapi.JobStatusFailed && s.SwapPhase != nil && *s.SwapPhase == openapi.SwapPhaseRefunded
}

// poll requests the status once. It returns nil if the answer is missing, a 429 or a 5xx.
func (r *Relay) poll(ctx context.Context, id uuid.UUID) (*openapi.SubmissionStatus, error) {
	const call = "GET /status"
	answer, err := r.Client.GetStatusWithResponse(ctx, id)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("%s: %w", call, context.Cause(ctx))
	case err != nil:
		return nil, nil //nolint:nilnil // a missing answer has no status; Follow polls again
	case answer.StatusCode() == http.StatusTooManyRequests || answer.StatusCode() >= http.StatusInternalServerError:
		return nil, nil //nolint:nilnil // no status, as above
	case answer.JSON200 == nil:
		return nil, unexpected(call, answer.StatusCode(), answer.Body)
	}
	status := &answer.JSON200.Data
	if status.Status == openapi.JobStatusFailed && !Refunded(status) {
		return nil, unexpected(call, answer.StatusCode(), answer.Body)
	}
	if status.Status == openapi.JobStatusCompleted && !Executed(status) {
		return nil, errors.Join(errors.New("the swap's status is completed, but its phase is not executed"), unexpected(call, answer.StatusCode(), answer.Body))
	}
	return status, nil
}

// reported has the fields whose changes Follow reports.
type reported struct {
	status openapi.JobStatus
	phase  openapi.SwapPhase
	waits  string
}

func reportedOf(s *openapi.SubmissionStatus) reported {
	v := reported{status: s.Status}
	if s.SwapPhase != nil {
		v.phase = *s.SwapPhase
	}
	if s.SwapWaits != nil {
		v.waits = *s.SwapWaits
	}
	return v
}
