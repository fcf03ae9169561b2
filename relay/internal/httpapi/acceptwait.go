package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/relaypool/relaypool/relay/internal/submission"
)

// acceptDivisor divides a client's wait. While the chain is unavailable, a submission may use
// wait/acceptDivisor to be accepted. The rest is for the outcome.
const acceptDivisor = 2

// submit decodes the body and submits it, and returns what is left of the client's wait. It waits
// only while the chain is unavailable (see acceptDivisor).
func (a *api) submit(w http.ResponseWriter, r *http.Request, decode func([]byte) (submission.Request, error), idempotencyKey *string, withdrawalOnly bool, wait time.Duration) (s *submission.Submission, left time.Duration, err error) {
	raw, err := readBody(w, r)
	if err != nil {
		return nil, 0, err
	}
	apart(func() { s, left, err = a.submitBody(r, raw, decode, idempotencyKey, withdrawalOnly, wait) })
	return s, left, err
}

func (a *api) submitBody(r *http.Request, raw []byte, decode func([]byte) (submission.Request, error), idempotencyKey *string, withdrawalOnly bool, wait time.Duration) (*submission.Submission, time.Duration, error) {
	req, err := decode(raw)
	if err != nil {
		return nil, 0, err
	}
	req.WithdrawalOnly, req.Client, req.Wait = withdrawalOnly, requestContextOf(r.Context()).key.client(), wait/acceptDivisor
	if idempotencyKey != nil {
		if err := checkIdempotencyKey(*idempotencyKey); err != nil {
			return nil, 0, err
		}
		req.IdempotencyKey = *idempotencyKey
	}
	began := a.Now()
	ctx, cancel := context.WithTimeout(r.Context(), a.CallTimeout+req.Wait)
	defer cancel()
	s, err := a.Admission.Submit(ctx, req)
	return s, wait - a.Now().Sub(began), err
}
