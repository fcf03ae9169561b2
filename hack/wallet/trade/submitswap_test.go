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

// relay answers the nth call with the nth answer, and all later calls with the last answer.
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

func cut(http.ResponseWriter) { panic(http.ErrAbortHandler) }

const (
	funded   = `,"swap_phase":"funded","swap_timeout_slot":205`
	executed = `,"swap_phase":"executed","swap_signature":"sig"`
	refunded = `,"swap_phase":"refunded","refund_signature":"sig","error_code":"swap_refunded"`
)

func TestASwapIsFollowedToItsEnd(t *testing.T) {
	t.Parallel()
	busy := answer(503, `{"error":true,"code":"database_unavailable","message":"x"}`)
	tests := map[string]struct {
		answers []func(http.ResponseWriter)
		want    []string
		end     openapi.SwapPhase
		fails   string
	}{
		"to the tokens, each change once": {
			answers: []func(http.ResponseWriter){
				status("pending", ""), status("processing", ""), status("processing", funded), status("processing", funded),
				status("processing", funded+`,"swap_waits":"no_route"`), status("processing", `,"swap_phase":"quoted"`), status("completed", executed),
			},
			want: []string{"pending", "processing", "processing funded", "processing funded no_route", "processing quoted", "completed executed"},
			end:  openapi.SwapPhaseExecuted,
		},
		"to the refund": {
			answers: []func(http.ResponseWriter){status("processing", funded+`,"swap_waits":"swap_price"`), status("failed", refunded)},
			want:    []string{"processing funded swap_price", "failed refunded"},
			end:     openapi.SwapPhaseRefunded,
		},
		"past answers without a status": {
			answers: []func(http.ResponseWriter){busy, cut, answer(429, `{"error":true,"code":"rate_limited","message":"x"}`), status("completed", executed)},
			want:    []string{"completed executed"},
			end:     openapi.SwapPhaseExecuted,
		},
		"to the failure of its first leg": {
			answers: []func(http.ResponseWriter){status("processing", ""), status("failed", `,"error":"x","error_code":"nullifier_spent"`)},
			want:    []string{"processing"}, fails: "GET /status answered 200:",
		},
		"to an unknown swap": {
			answers: []func(http.ResponseWriter){answer(404, `{"error":true,"code":"not_found","message":"x"}`)},
			fails:   "GET /status answered 404:",
		},
		"to a completion without an execution": {
			answers: []func(http.ResponseWriter){status("completed", funded)},
			fails:   "completed when it is executed",
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
			if tc.fails != "" {
				var unexpected *trade.Unexpected
				if err == nil || !strings.Contains(err.Error(), tc.fails) || !errors.As(err, &unexpected) {
					t.Errorf("error %v, want an unexpected answer with %q", err, tc.fails)
				}
				return
			}
			if err != nil || *end.SwapPhase != tc.end {
				t.Errorf("ended with %+v, error %v, want phase %s", end, err, tc.end)
			}
		})
	}
}

func TestFollowingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("enough")
	_, err := relay(t, status("processing", funded)).Follow(ctx, request, func(*openapi.SubmissionStatus) { cancel(reason) })
	if !errors.Is(err, reason) {
		t.Errorf("error %v, want the context's", err)
	}
}

func TestSubmit(t *testing.T) {
	t.Parallel()
	accepted := `{"success":true,"request_id":%q,"signature":null,"swap_state_pda":"x","nullifier":"y","data":{"request_id":%q,"status":"processing","swap_phase":"funded"},"error":null}`
	tests := map[string]struct {
		answer func(http.ResponseWriter)
		fails  string
	}{
		"the first leg is confirmed":      {answer(200, accepted, request, request), ""},
		"the first leg is unfinished":     {answer(202, accepted, request, request), ""},
		"the swap is refused":             {answer(400, `{"error":true,"code":"invalid_swap","message":"x"}`), "POST /transact_swap answered 400:"},
		"the relay has no router":         {answer(501, `{"error":true,"code":"not_available","message":"x"}`), "POST /transact_swap answered 501:"},
		"the answer is lost":              {cut, "EOF"},
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
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("error %v, want one with %q", err, tc.fails)
				}
				return
			}
			if err != nil || got.RequestID != request || *got.Data.SwapPhase != openapi.SwapPhaseFunded {
				t.Errorf("answer %+v, error %v", got, err)
			}
		})
	}
}
