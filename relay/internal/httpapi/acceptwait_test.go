package httpapi_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/httpapi"
	"github.com/relaypool/relaypool/relay/internal/submission"
)

// A submission may take half of its client's wait to be accepted. What that took is missing from
// the wait for the outcome.
func TestWaitOfASubmission(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		path, prefer string
		took         time.Duration // to be accepted
		wantAccept   time.Duration
		wantOutcome  time.Duration // 0 when the relay must not wait for the outcome
	}{
		"by default":                      {path: "/transact", took: 4 * time.Second, wantAccept: 15 * time.Second, wantOutcome: 26 * time.Second},
		"as long as requested":            {path: "/transact", prefer: "wait=10", took: 4 * time.Second, wantAccept: 5 * time.Second, wantOutcome: 6 * time.Second},
		"acceptance takes the whole wait": {path: "/transact", prefer: "wait=10", took: 11 * time.Second, wantAccept: 5 * time.Second},
		"not at all":                      {path: "/transact", prefer: "respond-async", took: time.Second},
		"on the asynchronous route":       {path: "/withdraw", prefer: "wait=10", took: time.Second},
		"of a swap":                       {path: "/transact_swap", prefer: "wait=20", took: time.Second, wantAccept: 10 * time.Second, wantOutcome: 19 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := now
			var accept, outcome, limit time.Duration
			d := &domains{
				submit: func(ctx context.Context, r submission.Request) (*submission.Submission, error) {
					deadline, _ := ctx.Deadline()
					accept, limit = r.Wait, time.Until(deadline).Round(time.Second)
					clock = clock.Add(tt.took)
					return pending(), nil
				},
				wait: func(ctx context.Context, _ uuid.UUID) (*submission.Submission, error) {
					deadline, _ := ctx.Deadline()
					outcome = time.Until(deadline).Round(time.Second)
					return pending(), nil
				},
			}
			f := newFixture(t, d, func(o *httpapi.Options) {
				o.Now = func() time.Time { return clock }
				o.Info.Swaps = &httpapi.Swaps{RouterProgram: [32]byte{1}}
			})
			body := transactBody()
			if tt.path == "/transact_swap" {
				body = transactBody(with("output_mint", "m"), with("recipient_ata", "a"), with("min_output_amount", "1"))
			}
			r := post(tt.path, body)
			if tt.prefer != "" {
				r.Header.Set("Prefer", tt.prefer)
			}
			if resp, body := f.do(t, r); resp.StatusCode != http.StatusAccepted {
				t.Fatalf("status %d, want 202: %s", resp.StatusCode, body)
			}
			if accept != tt.wantAccept || limit != time.Minute+tt.wantAccept || outcome != tt.wantOutcome {
				t.Errorf("may take %s to be accepted, of %s at most, and waits %s for the outcome; want %s, %s and %s", accept, limit, outcome, tt.wantAccept, time.Minute+tt.wantAccept, tt.wantOutcome)
			}
		})
	}
}
