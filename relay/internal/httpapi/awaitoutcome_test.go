package httpapi_test

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/httpapi"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/refusal"
)

// repeatOf marks a submission as found by the content of a repeated request.
func repeatOf(s *submission.Submission) *submission.Submission {
	s.Repeated = true
	return s
}

// TestRepeatByContentOfLandedSubmissionHasNoID: anybody can copy a landed proof from
// the chain. Whoever sends it again gets its outcome, but not the id that gives access
// to /status.
func TestRepeatByContentOfLandedSubmissionHasNoID(t *testing.T) {
	t.Parallel()
	id := submissionID.String()
	none := uuid.Nil.String()
	waitReturns := func(s *submission.Submission, outcome *submission.Submission) *domains {
		d := submitReturns(s, nil)
		d.wait = func(ctx context.Context, _ uuid.UUID) (*submission.Submission, error) {
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) < 4*time.Second {
				t.Errorf("a repeat waits until %v (deadline set: %t), want at least 4 seconds from now", deadline, ok)
			}
			return outcome, nil
		}
		return d
	}
	staleRoot := refusal.New(refusal.RootNotFound, "RootNotFound")
	tests := map[string]struct {
		domains    *domains
		path       string
		wantStatus int
		wantID     string
	}{
		"landed":                                                   {submitReturns(repeatOf(completed()), nil), "/transact", 200, none},
		"landed, as a withdrawal":                                  {submitReturns(repeatOf(completed()), nil), "/withdraw", 202, none},
		"lands during the wait":                                    {waitReturns(repeatOf(pending()), completed()), "/transact", 200, none},
		"lands during the wait, as a withdrawal":                   {waitReturns(repeatOf(pending()), completed()), "/withdraw", 202, none},
		"fails during the wait":                                    {waitReturns(repeatOf(pending()), failed(staleRoot)), "/transact", 400, id},
		"fails during the wait, as a withdrawal":                   {waitReturns(repeatOf(pending()), failed(staleRoot)), "/withdraw", 400, id},
		"pending after the wait":                                   {waitReturns(repeatOf(pending()), pending()), "/transact", 202, id},
		"pending after the wait, as a withdrawal":                  {waitReturns(repeatOf(pending()), pending()), "/withdraw", 202, id},
		"landed, repeated by its Idempotency-Key":                  {submitReturns(completed(), nil), "/transact", 200, id},
		"landed, repeated by its Idempotency-Key, as a withdrawal": {submitReturns(completed(), nil), "/withdraw", 202, id},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp, body := newFixture(t, tt.domains).do(t, post(tt.path, transactBody(), "Prefer", "respond-async"))
			if resp.StatusCode != tt.wantStatus {
				t.Fatalf("status %d, want %d: %s", resp.StatusCode, tt.wantStatus, body)
			}
			answer := string(body) + resp.Header.Get("Location")
			if tt.wantID != id && strings.Contains(answer, id) {
				t.Errorf("the answer has the submission's id: %s", answer)
			}
			if !strings.Contains(answer, tt.wantID) {
				t.Errorf("answer %s, want the id %s", answer, tt.wantID)
			}
		})
	}
}

// TestSubmissionHasHashOfClientsAPIKey: with it, each client has its own
// Idempotency-Keys.
func TestSubmissionHasHashOfClientsAPIKey(t *testing.T) {
	t.Parallel()
	const key = "first-key-0123456789"
	var got submission.Request
	d := &domains{submit: func(_ context.Context, r submission.Request) (*submission.Submission, error) {
		got = r
		return completed(), nil
	}}
	f := newFixture(t, d, func(o *httpapi.Options) {
		o.APIKeys = func() []httpapi.APIKey { return []httpapi.APIKey{{Hash: sha256.Sum256([]byte(key))}} }
	})
	if resp, body := f.do(t, post("/transact", transactBody(), "Authorization", "Bearer "+key)); resp.StatusCode != http.StatusOK {
		t.Fatalf("answered %d, want 200: %s", resp.StatusCode, body)
	}
	if got.Client != sha256.Sum256([]byte(key)) {
		t.Error("the submission does not have the hash of the client's API key")
	}
	f = newFixture(t, d)
	f.do(t, post("/transact", transactBody(), "Authorization", "Bearer "+key))
	if got.Client != [32]byte{} {
		t.Error("a relay without API keys uses the Authorization header as an API key")
	}
}
