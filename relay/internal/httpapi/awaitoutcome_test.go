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

// repeatOf marks a submission as one that a request repeats by its content.
func repeatOf(s *submission.Submission) *submission.Submission {
	s.Repeated = true
	return s
}

// TestARepeatByContentHasNoID: anybody can copy a landed proof from the chain.
// Whoever sends it again gets its outcome, but not the id that opens /status.
func TestARepeatByContentHasNoID(t *testing.T) {
	t.Parallel()
	id := submissionID.String()
	none := uuid.Nil.String()
	later := func(s *submission.Submission, end *submission.Submission) *domains {
		d := submits(s, nil)
		d.wait = func(ctx context.Context, _ uuid.UUID) (*submission.Submission, error) {
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) < 4*time.Second {
				t.Errorf("a repeat waits until %v, %t: want long enough to learn that it has just landed", deadline, ok)
			}
			return end, nil
		}
		return d
	}
	broken := refusal.New(refusal.RootNotFound, "RootNotFound")
	tests := map[string]struct {
		domains    *domains
		path       string
		wantStatus int
		wantID     string
	}{
		"landed":                             {submits(repeatOf(completed()), nil), "/transact", 200, none},
		"landed, as a withdrawal":            {submits(repeatOf(completed()), nil), "/withdraw", 202, none},
		"lands meanwhile":                    {later(repeatOf(pending()), completed()), "/transact", 200, none},
		"lands meanwhile, as a withdrawal":   {later(repeatOf(pending()), completed()), "/withdraw", 202, none},
		"fails meanwhile":                    {later(repeatOf(pending()), failed(broken)), "/transact", 400, id},
		"fails meanwhile, as a withdrawal":   {later(repeatOf(pending()), failed(broken)), "/withdraw", 400, id},
		"still under way":                    {later(repeatOf(pending()), pending()), "/transact", 202, id},
		"still under way, as a withdrawal":   {later(repeatOf(pending()), pending()), "/withdraw", 202, id},
		"by its Idempotency-Key":             {submits(completed(), nil), "/transact", 200, id},
		"by its Idempotency-Key, withdrawal": {submits(completed(), nil), "/withdraw", 202, id},
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

// TestKeysOfClients: a submission names the API key of its client, so that each
// client has Idempotency-Keys of its own.
func TestKeysOfClients(t *testing.T) {
	t.Parallel()
	const key = "first-key-0123456789"
	var got submission.Request
	d := &domains{submit: func(_ context.Context, r submission.Request) (*submission.Submission, error) {
		got = r
		return completed(), nil
	}}
	f := newFixture(t, d, func(o *httpapi.Options) { o.APIKeys = [][sha256.Size]byte{sha256.Sum256([]byte(key))} })
	if resp, body := f.do(t, post("/transact", transactBody(), "Authorization", "Bearer "+key)); resp.StatusCode != http.StatusOK {
		t.Fatalf("answered %d: %s", resp.StatusCode, body)
	}
	if got.Client != sha256.Sum256([]byte(key)) {
		t.Error("the submission does not say whose it is")
	}
	f = newFixture(t, d)
	f.do(t, post("/transact", transactBody(), "Authorization", "Bearer "+key))
	if got.Client != [32]byte{} {
		t.Error("a relay without API keys takes what a client sends for one")
	}
}
