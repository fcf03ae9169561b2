package trade_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/hack/wallet/trade"
	"github.com/relaypool/relaypool/relay/openapi"
)

var request = uuid.UUID{15: 1}

// relay starts a relay that gives the nth call the nth answer, and later calls the last answer.
func relay(t *testing.T, answers ...func(http.ResponseWriter)) *trade.Relay {
	t.Helper()
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answers[min(int(calls.Add(1)), len(answers))-1](w)
	}))
	t.Cleanup(server.Close)
	client, err := openapi.NewClientWithResponses(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return &trade.Relay{Client: client, Poll: time.Millisecond}
}

func answer(status int, body string, args ...any) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.WriteHeader(status)
		fmt.Fprintf(w, body, args...)
	}
}

func status(state, more string) func(http.ResponseWriter) {
	return answer(200, `{"success":true,"data":{"request_id":%q,"status":%q%s},"error":null}`, request, state, more)
}

func closeConnection(http.ResponseWriter) { panic(http.ErrAbortHandler) }

const (
	funded   = `,"swap_phase":"funded","swap_timeout_slot":205`
	executed = `,"swap_phase":"executed","swap_signature":"sig"`
	refunded = `,"swap_phase":"refunded","refund_signature":"sig","error_code":"swap_refunded"`
)

func TestFollowReportsChangesUntilTheSwapEnds(t *testing.T) {
	t.Parallel()
	busy := answer(503, `{"error":true,"code":"database_unavailable","message":"x"}`)
	tests := map[string]struct {
		answers   []func(http.ResponseWriter)
		want      []string
		wantEnd   openapi.SwapPhase
		wantError string
	}{
		"an executed swap, with each change once": {
			answers: []func(http.ResponseWriter){
				status("pending", ""), status("processing", ""), status("processing", funded), status("processing", funded),
				status("processing", funded+`,"swap_waits":"no_route"`), status("processing", `,"swap_phase":"quoted"`), status("completed", executed),
			},
			want:    []string{"pending", "processing", "processing funded", "processing funded no_route", "processing quoted", "completed executed"},
			wantEnd: openapi.SwapPhaseExecuted,
		},
		"a refunded swap": {
			answers: []func(http.ResponseWriter){status("processing", funded+`,"swap_waits":"swap_price"`), status("failed", refunded)},
			want:    []string{"processing funded swap_price", "failed refunded"},
			wantEnd: openapi.SwapPhaseRefunded,
		},
		"a swap with answers that have no status": {
			answers: []func(http.ResponseWriter){busy, closeConnection, answer(429, `{"error":true,"code":"rate_limited","message":"x"}`), status("completed", executed)},
			want:    []string{"completed executed"},
			wantEnd: openapi.SwapPhaseExecuted,
		},
		"a swap with a failed first leg": {
			answers: []func(http.ResponseWriter){status("processing", ""), status("failed", `,"error":"x","error_code":"nullifier_spent"`)},
			want:    []string{"processing"}, wantError: "GET /status answered 200:",
		},
		"an unknown swap": {
			answers:   []func(http.ResponseWriter){answer(404, `{"error":true,"code":"not_found","message":"x"}`)},
			wantError: "GET /status answered 404:",
		},
		"a swap that is completed but not executed": {
			answers:   []func(http.ResponseWriter){status("completed", funded)},
			wantError: "its phase is not executed",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var seen []string
			end, err := relay(t, tc.answers...).Follow(ctx, request, func(s *openapi.SubmissionStatus) {
				line := string(s.Status)
				if s.SwapPhase != nil {
					line += " " + string(*s.SwapPhase)
				}
				if s.SwapWaits != nil {
					line += " " + *s.SwapWaits
				}
				seen = append(seen, line)
			})
			if diff := cmp.Diff(tc.want, seen); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) {
					t.Errorf("error %v, want one with %q", err, tc.wantError)
				}
				return
			}
			if err != nil || *end.SwapPhase != tc.wantEnd {
				t.Errorf("ended with %+v, error %v, want phase %s", end, err, tc.wantEnd)
			}
		})
	}
}

func TestFollowReturnsTheContextsCause(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("the test's reason")
	_, err := relay(t, status("processing", funded)).Follow(ctx, request, func(*openapi.SubmissionStatus) { cancel(reason) })
	if !errors.Is(err, reason) {
		t.Errorf("error %v, want the context's cause", err)
	}
}

func TestSubmit(t *testing.T) {
	t.Parallel()
	accepted := `{"success":true,"request_id":%q,"signature":null,"swap_state_pda":"x","nullifier":"y","data":{"request_id":%q,"status":"processing","swap_phase":"funded"},"error":null}`
	tests := map[string]struct {
		answer    func(http.ResponseWriter)
		wantError string
	}{
		"the first leg is confirmed":      {answer(200, accepted, request, request), ""},
		"the first leg is unfinished":     {answer(202, accepted, request, request), ""},
		"the swap is refused":             {answer(400, `{"error":true,"code":"invalid_swap","message":"x"}`), "POST /transact_swap answered 400:"},
		"the relay has no router":         {answer(501, `{"error":true,"code":"not_available","message":"x"}`), "POST /transact_swap answered 501:"},
		"the answer is lost":              {closeConnection, "EOF"},
		"the same swap was refunded once": {answer(409, `{"error":true,"code":"swap_refunded","message":"x"}`), "POST /transact_swap answered 409:"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			terms, err := trade.Terms(buyer, usdc, 1)
			if err != nil {
				t.Fatal(err)
			}
			body, err := trade.Request(make([]byte, 256), make([]byte, 264), buyer, terms, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := relay(t, tc.answer).Submit(t.Context(), body)
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) {
					t.Errorf("error %v, want one with %q", err, tc.wantError)
				}
				return
			}
			if err != nil || got.RequestID != request || *got.Data.SwapPhase != openapi.SwapPhaseFunded {
				t.Errorf("answer %+v, error %v; want the request's id and phase funded", got, err)
			}
		})
	}
}
