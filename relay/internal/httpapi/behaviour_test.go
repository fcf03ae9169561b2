package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/httpapi"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/viewingkey"
	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/refusal"
)

// TestWaiting checks how long an answer may wait. The fake does not wait: it reads
// the deadline of the context that it gets.
func TestWaiting(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		prefer      []string
		wantWait    time.Duration // 0 when the relay must not wait at all
		wantApplied string
	}{
		"by default":                             {nil, 30 * time.Second, ""},
		"not at all":                             {[]string{"respond-async"}, 0, "respond-async"},
		"as long as requested":                   {[]string{"wait=10"}, 10 * time.Second, "wait=10"},
		"longer than the default":                {[]string{"wait=45"}, 45 * time.Second, "wait=45"},
		"at most the relay's maximum":            {[]string{"wait=600"}, time.Minute, "wait=60"},
		"zero seconds":                           {[]string{"wait=0"}, 0, "wait=0"},
		"both in one header":                     {[]string{"respond-async, wait=10"}, 10 * time.Second, "respond-async, wait=10"},
		"both in two headers":                    {[]string{"wait=10", "respond-async"}, 10 * time.Second, "respond-async, wait=10"},
		"the first of two waits":                 {[]string{"wait=10, wait=20"}, 10 * time.Second, "wait=10"},
		"in capitals, quoted, with space":        {[]string{` Respond-Async , WAIT = "7" `}, 7 * time.Second, "respond-async, wait=7"},
		"with parameters, which are ignored":     {[]string{"wait=7; foo=bar"}, 7 * time.Second, "wait=7"},
		"a wait that is not a number is ignored": {[]string{"wait=soon"}, 30 * time.Second, ""},
		"a negative wait is ignored":             {[]string{"wait=-1"}, 30 * time.Second, ""},
		"a wait that overflows is ignored":       {[]string{"wait=99999999999999999999"}, 30 * time.Second, ""},
		"a wait without a number is ignored":     {[]string{"wait"}, 30 * time.Second, ""},
		"other preferences are ignored":          {[]string{"return=minimal, handling=lenient"}, 30 * time.Second, ""},
		"an empty header is ignored":             {[]string{""}, 30 * time.Second, ""},
		"percent signs are ignored":              {[]string{"wait=%zz"}, 30 * time.Second, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			waited := time.Duration(0)
			d := submitReturns(pending(), nil)
			d.wait = func(ctx context.Context, id uuid.UUID) (*submission.Submission, error) {
				deadline, ok := ctx.Deadline()
				if !ok || id != submissionID {
					return nil, errors.New("waits without a deadline, or for another submission")
				}
				waited = time.Until(deadline).Round(time.Second)
				return pending(), nil
			}
			r := post("/transact", transactBody())
			for _, p := range tt.prefer {
				r.Header.Add("Prefer", p)
			}
			resp, body := newFixture(t, d).do(t, r)
			if resp.StatusCode != http.StatusAccepted {
				t.Fatalf("status %d, want 202: %s", resp.StatusCode, body)
			}
			if waited != tt.wantWait {
				t.Errorf("waits %v, want %v", waited, tt.wantWait)
			}
			if got := resp.Header.Get("Preference-Applied"); got != tt.wantApplied {
				t.Errorf("Preference-Applied is %q, want %q", got, tt.wantApplied)
			}
		})
	}
}

// TestErrorOfWaitIsNotSentToClient: the submission is accepted, so an error of the wait
// must not reach the client.
func TestErrorOfWaitIsNotSentToClient(t *testing.T) {
	t.Parallel()
	d := submitReturns(pending(), nil)
	d.wait = func(context.Context, uuid.UUID) (*submission.Submission, error) {
		return nil, refusal.New(refusal.DatabaseUnavailable, "no database")
	}
	f := newFixture(t, d)
	resp, body := f.do(t, post("/transact", transactBody()))
	if resp.StatusCode != http.StatusAccepted || resp.Header.Get("Location") != "/status/"+submissionID.String() {
		t.Errorf("status %d, Location %q, want 202 and the status: %s", resp.StatusCode, resp.Header.Get("Location"), body)
	}
	if !strings.Contains(f.log.String(), "waiting for an outcome failed") {
		t.Errorf("the error is not logged: %s", f.log)
	}
}

func TestInternalErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		domains *domains
		request *http.Request
	}{
		"an error of a domain":                     {submitReturns(nil, errors.New("disk on fire")), post("/transact", transactBody())},
		"a wrapped error of a domain":              {submitReturns(nil, fmt.Errorf("accept: %w", errors.New("disk on fire"))), post("/withdraw", transactBody())},
		"a failure without a reason":               {submitReturns(failed(nil), nil), post("/transact", transactBody())},
		"the status of a failure without a reason": {&domains{get: func(context.Context, uuid.UUID) (*submission.Submission, error) { return failed(nil), nil }}, get("/status/" + submissionID.String())},
		"a failure with a field of the wrong type": {&domains{get: failureWithInvalidField}, get("/status/" + submissionID.String())},
		"a refusal that cannot be encoded":         {submitReturns(nil, refusal.New(refusal.PoolBusy, "busy").With("f", func() {})), post("/transact", transactBody())},
		"a deadline exceeded in a domain":          {submitReturns(nil, context.DeadlineExceeded), post("/transact", transactBody())},
		"a cancellation that the client did not cause": {
			submitReturns(nil, context.Canceled), post("/transact", transactBody()),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, tt.domains)
			resp, body := f.do(t, tt.request)
			if resp.StatusCode != http.StatusInternalServerError {
				t.Fatalf("status %d, want 500: %s", resp.StatusCode, body)
			}
			got := object(t, body)
			if len(got) != 4 || got["code"] != "internal" || got["request_id"] != "exchange-1" {
				t.Errorf("body %s, want only error, code, message and the exchange's request_id", body)
			}
			if strings.Contains(string(body), "fire") {
				t.Errorf("the cause reaches the client: %s", body)
			}
			if n := strings.Count(f.log.String(), `"level":"ERROR"`); n != 1 {
				t.Errorf("logged %d times as an error, want once: %s", n, f.log)
			}
		})
	}
}

func failureWithInvalidField(context.Context, uuid.UUID) (*submission.Submission, error) {
	return failed(refusal.New(refusal.NullifierSpent, "spent").With("nullifier_index", "first")), nil
}

func TestPanics(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		panics  func()
		wantLog string
	}{
		"with text":          {func() { panic("canary in a panic") }, "value of type string"},
		"with an error":      {func() { panic(errors.New("canary in a panic")) }, "value of type *errors.errorString"},
		"by a runtime error": {func() { _ = bytes.Repeat(nil, 1)[len("canary"):] }, "slice bounds out of range [6:0]"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &domains{submit: func(context.Context, submission.Request) (*submission.Submission, error) {
				tt.panics()
				return nil, nil
			}}
			f := newFixture(t, d)
			resp, body := f.do(t, post("/transact", transactBody()))
			got := object(t, body)
			if resp.StatusCode != http.StatusInternalServerError || len(got) != 4 || got["request_id"] != "exchange-1" {
				t.Errorf("status %d, body %s, want 500 with the exchange's id and nothing else", resp.StatusCode, body)
			}
			log := f.log.String()
			if !strings.Contains(log, tt.wantLog) || !strings.Contains(log, "behaviour_test.go") || strings.Contains(log, "canary") {
				t.Errorf("log must have %q and the source file, without the panic's value: %s", tt.wantLog, log)
			}
			if diff := cmp.Diff([]exchange{{"POST", "/transact", 500}}, f.observer.exchanges); diff != "" {
				t.Errorf("observed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestClientDisconnectIsNotLoggedAsError(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	d := &domains{submit: func(ctx context.Context, _ submission.Request) (*submission.Submission, error) {
		cancel()
		return nil, fmt.Errorf("read rows: %w", ctx.Err())
	}}
	f := newFixture(t, d)
	f.handler.ServeHTTP(httptest.NewRecorder(), post("/transact", transactBody()).WithContext(ctx))
	if log := f.log.String(); strings.Contains(log, "ERROR") || strings.Contains(log, "WARN") {
		t.Errorf("a disconnected client is logged as an error: %s", log)
	}
	if diff := cmp.Diff([]exchange{{"POST", "/transact", 499}}, f.observer.exchanges); diff != "" {
		t.Errorf("observed (-want +got):\n%s", diff)
	}
}

func TestCallsHaveADeadline(t *testing.T) {
	t.Parallel()
	d := &domains{submit: func(ctx context.Context, _ submission.Request) (*submission.Submission, error) {
		<-ctx.Done()
		return nil, refusal.New(refusal.DatabaseUnavailable, "no answer from the database")
	}}
	resp, _ := newFixture(t, d, func(o *httpapi.Options) { o.CallTimeout = time.Millisecond }).do(t, post("/transact", transactBody()))
	if resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("status %d, want 503", resp.StatusCode)
	}
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ sent, want string }{
		"a missing id is generated":           {"", "exchange-1"},
		"a valid id is kept":                  {"Trace_1.a-B", "Trace_1.a-B"},
		"an id of the maximum length is kept": {strings.Repeat("a", 64), strings.Repeat("a", 64)},
		"a longer id is replaced":             {strings.Repeat("a", 65), "exchange-1"},
		"an id with a space is replaced":      {"a b", "exchange-1"},
		"an id with a quote is replaced":      {`a"b`, "exchange-1"},
		"an id beyond ASCII is replaced":      {"ä", "exchange-1"},
		"an id with markup is replaced":       {"<a>", "exchange-1"},
		"an id with a newline is replaced":    {"a\nb", "exchange-1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, &domains{})
			r := get("/")
			r.Header.Set("X-Request-Id", tt.sent)
			resp, _ := f.do(t, r)
			if got := resp.Header.Get("X-Request-Id"); got != tt.want {
				t.Errorf("X-Request-Id is %q, want %q", got, tt.want)
			}
			if !strings.Contains(f.log.String(), `"request_id":"`+tt.want+`"`) {
				t.Errorf("the log does not have the request_id %s: %s", tt.want, f.log)
			}
		})
	}
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	from := func(remote, header, value string) *http.Request {
		r := get("/")
		r.RemoteAddr = remote
		if header != "" {
			r.Header.Add(header, value)
		}
		return r
	}
	headerLines := func(values ...string) *http.Request {
		r := from("10.0.0.1:1", "", "")
		for _, v := range values {
			r.Header.Add("X-Forwarded-For", v)
		}
		return r
	}
	tests := map[string]struct {
		header      string
		first, next *http.Request
		wantLimited bool
	}{
		"the same last header line after different lines":        {"X-Forwarded-For", headerLines("1.1.1.1", "203.0.113.7"), headerLines("2.2.2.2", "203.0.113.7"), true},
		"a different last header line after the same line":       {"X-Forwarded-For", headerLines("1.1.1.1", "203.0.113.7"), headerLines("1.1.1.1", "203.0.113.8"), false},
		"the same address again":                                 {"", from("203.0.113.7:1", "", ""), from("203.0.113.7:2", "", ""), true},
		"another address":                                        {"", from("203.0.113.7:1", "", ""), from("203.0.113.8:1", "", ""), false},
		"the same /64 of IPv6":                                   {"", from("[2001:db8::1]:1", "", ""), from("[2001:db8::2]:1", "", ""), true},
		"a header is ignored unless configured":                  {"", from("203.0.113.7:1", "X-Real-Ip", "10.0.0.1"), from("203.0.113.7:1", "X-Real-Ip", "10.0.0.2"), true},
		"two clients behind the proxy":                           {"X-Real-IP", from("10.0.0.1:1", "X-Real-Ip", "203.0.113.7"), from("10.0.0.1:1", "X-Real-Ip", "203.0.113.8"), false},
		"one client behind two proxies":                          {"X-Real-IP", from("10.0.0.1:1", "X-Real-Ip", "203.0.113.7"), from("10.0.0.2:1", "X-Real-Ip", "203.0.113.7"), true},
		"the same last address after different addresses":        {"X-Forwarded-For", from("10.0.0.1:1", "X-Forwarded-For", "1.1.1.1, 203.0.113.7"), from("10.0.0.1:1", "X-Forwarded-For", "2.2.2.2,203.0.113.7"), true},
		"a header without an address: the peer's address counts": {"X-Real-IP", from("10.0.0.1:1", "X-Real-Ip", "unknown"), from("10.0.0.1:2", "", ""), true},
		"an IPv4-mapped IPv6 address is the same client":         {"X-Real-IP", from("10.0.0.1:1", "X-Real-Ip", "::ffff:203.0.113.7"), from("10.0.0.1:1", "X-Real-Ip", "203.0.113.7"), true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, &domains{}, func(o *httpapi.Options) { o.RatePerMinute, o.ClientIPHeader = 1, tt.header })
			if resp, body := f.do(t, tt.first); resp.StatusCode != http.StatusOK {
				t.Fatalf("the first request is answered %d, want 200: %s", resp.StatusCode, body)
			}
			resp, body := f.do(t, tt.next)
			if limited := resp.StatusCode == http.StatusTooManyRequests; limited != tt.wantLimited {
				t.Fatalf("status %d, want limited %t: %s", resp.StatusCode, tt.wantLimited, body)
			}
			if !tt.wantLimited {
				return
			}
			want := map[string]any{"error": true, "code": "rate_limited", "message": "too many requests from your address: expected at most 1 a minute; wait for Retry-After, and poll /status every 2 to 5 seconds"}
			if diff := cmp.Diff(want, object(t, body)); diff != "" || resp.Header.Get("Retry-After") != "60" {
				t.Errorf("Retry-After %q, body (-want +got):\n%s", resp.Header.Get("Retry-After"), diff)
			}
			for _, address := range []string{"203.0.113", "10.0.0", "2001:db8"} {
				if strings.Contains(f.log.String(), address) {
					t.Errorf("the log has the client's address: %s", f.log)
				}
			}
		})
	}
	t.Run("the operations port has no limit", func(t *testing.T) {
		t.Parallel()
		d := &domains{backlog: func() (submission.Backlog, error) { return submission.Backlog{Due: 7}, nil }}
		f := newFixture(t, d, func(o *httpapi.Options) { o.RatePerMinute = 1 })
		f.handler = f.operations
		for range 3 {
			if resp, body := f.do(t, get("/backlog")); resp.StatusCode != http.StatusOK || object(t, body)["due_count"] != 7.0 {
				t.Fatalf("GET /backlog is answered %d, want 200 with 7 due submissions: %s", resp.StatusCode, body)
			}
		}
		rec := httptest.NewRecorder()
		f.operations.ServeHTTP(rec, get("/compliance-key"))
		if rec.Code != http.StatusNotFound {
			t.Errorf("GET /compliance-key is answered %d, want 404: %s", rec.Code, rec.Body)
		}
	})
	t.Run("no limit", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, &domains{})
		for range 500 {
			if resp, _ := f.do(t, get("/")); resp.StatusCode != http.StatusOK {
				t.Fatalf("status %d, want 200 every time", resp.StatusCode)
			}
		}
	})
}

func TestCORS(t *testing.T) {
	t.Parallel()
	preflight := func() *http.Request {
		r := httptest.NewRequest(http.MethodOptions, "/transact", nil)
		r.Header.Set("Origin", "https://app.example")
		r.Header.Set("Access-Control-Request-Method", "POST")
		r.Header.Set("Access-Control-Request-Headers", "content-type,idempotency-key,if-none-match,prefer")
		return r
	}
	t.Run("off by default", func(t *testing.T) {
		t.Parallel()
		resp, _ := newFixture(t, &domains{}).do(t, preflight())
		if resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("status %d, headers %v, want 405 and the origin not allowed", resp.StatusCode, resp.Header)
		}
	})
	on := func(o *httpapi.Options) { o.CORSOrigins = []string{"https://app.example"} }
	t.Run("a preflight of an origin that may call", func(t *testing.T) {
		t.Parallel()
		rec := httptest.NewRecorder()
		newFixture(t, &domains{}, on).handler.ServeHTTP(rec, preflight())
		if rec.Code != http.StatusOK || rec.Header().Get("Access-Control-Allow-Origin") != "https://app.example" || rec.Header().Get("Access-Control-Allow-Headers") == "" {
			t.Errorf("status %d, headers %v, want 200 and the origin allowed", rec.Code, rec.Header())
		}
	})
	t.Run("an allowed origin can read errors", func(t *testing.T) {
		t.Parallel()
		r := get("/nowhere")
		r.Header.Set("Origin", "https://app.example")
		resp, _ := newFixture(t, &domains{}, on).do(t, r)
		exposed := strings.ToLower(resp.Header.Get("Access-Control-Expose-Headers"))
		if resp.Header.Get("Access-Control-Allow-Origin") != "https://app.example" || !strings.Contains(exposed, "retry-after") || !strings.Contains(exposed, "etag") {
			t.Errorf("headers %v, want the origin allowed and Retry-After and ETag exposed", resp.Header)
		}
	})
	t.Run("another origin", func(t *testing.T) {
		t.Parallel()
		r := get("/")
		r.Header.Set("Origin", "https://evil.example")
		resp, _ := newFixture(t, &domains{}, on).do(t, r)
		if got := resp.Header.Get("Access-Control-Allow-Origin"); got != "" {
			t.Errorf("Access-Control-Allow-Origin of another origin is %q, want none", got)
		}
	})
}

// TestAccessLog checks exactly what one exchange logs.
func TestAccessLog(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		request *http.Request
		domains *domains
		want    map[string]any
	}{
		"a read is logged at debug with the route's pattern": {
			request: get("/status/" + submissionID.String()),
			domains: &domains{get: func(context.Context, uuid.UUID) (*submission.Submission, error) { return pending(), nil }},
			want:    map[string]any{"level": "DEBUG", "method": "GET", "route": "/status/{id}", "status": 200.0},
		},
		"a request that changes state is logged at info": {
			request: post("/withdraw", transactBody()), domains: submitReturns(pending(), nil),
			want: map[string]any{"level": "INFO", "method": "POST", "route": "/withdraw", "status": 202.0},
		},
		"a refusal is logged with its code": {
			request: post("/transact", "{}"), domains: &domains{},
			want: map[string]any{"level": "INFO", "method": "POST", "route": "/transact", "status": 400.0, "code": "invalid_request"},
		},
		"the text of an unknown path is not logged": {
			request: get("/canary/path?canary=1"), domains: &domains{},
			want: map[string]any{"level": "DEBUG", "method": "GET", "route": "unmatched", "status": 404.0, "code": "route_not_found"},
		},
		"the name of an unknown method is not logged": {
			request: httptest.NewRequest("CANARY", "/transact", nil), domains: &domains{},
			want: map[string]any{"level": "DEBUG", "method": "other", "route": "unmatched", "status": 405.0, "code": "method_not_allowed"},
		},
		"a HEAD request is logged with the route": {
			request: httptest.NewRequest(http.MethodHead, "/", nil), domains: &domains{},
			want: map[string]any{"level": "DEBUG", "method": "HEAD", "route": "/", "status": 200.0},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, tt.domains)
			f.handler.ServeHTTP(httptest.NewRecorder(), tt.request)
			var got map[string]any
			if err := json.Unmarshal([]byte(f.log.String()), &got); err != nil {
				t.Fatalf("the log is not one line of JSON: %v: %s", err, f.log)
			}
			delete(got, "time")
			want := merge(map[string]any{"msg": "request answered", "request_id": "exchange-1", "duration": 0.0}, tt.want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
			wantSeen := []exchange{{tt.want["method"].(string), tt.want["route"].(string), int(tt.want["status"].(float64))}}
			if diff := cmp.Diff(wantSeen, f.observer.exchanges); diff != "" {
				t.Errorf("observed (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCanary sends recognisable values in every field and header of every route, valid
// and invalid. It looks for them in everything that the relay writes: its log, its
// metrics' labels and its answers.
func TestCanary(t *testing.T) {
	t.Parallel()
	const canary = "CANARYcanary0123456789"
	canaries := []string{canary, "Q0FOQVJZ", "43414e415259", "203.0.113.99", "9876543210987654", outputMint.String(), outputATA.String()}
	checkNoCanary := func(where, text string) {
		for _, c := range canaries {
			if strings.Contains(text, c) {
				t.Errorf("%s contains %s: %s", where, c, text)
			}
		}
	}
	encoded := b64([]byte(canary))
	values := []any{canary, encoded, canary + "!", []any{canary}, []any{encoded, canary + "!"}, map[string]any{canary: canary}}
	var requests []*http.Request
	for _, name := range []string{"proof_bytes", "public_inputs", "recipient", "encrypted_notes", "outputs", canary} {
		for _, v := range values {
			requests = append(requests, post("/transact", transactBody(with(name, v))), post("/withdraw", transactBody(with(name, v))), post("/transact_swap", transactBody(with(name, v))))
		}
	}
	for _, name := range []string{"output_mint", "recipient_ata", "min_output_amount", "recipient"} {
		for _, v := range append(values, "98765432109876543210987", json.Number("-98765432109876543210987")) {
			requests = append(requests, post("/transact_swap", swapBody(with(name, v))))
		}
	}
	for _, name := range []string{"user_pubkey", "viewing_key", "signature", "identifier"} {
		for _, v := range values {
			requests = append(requests, post("/viewing-key/register", registerBody(with(name, v))))
		}
	}
	requests = append(requests,
		post("/transact", canary), post("/transact", `{"`+canary), post("/transact", `{"proof_bytes":"\u00`+canary), post("/transact", `["`+canary+`"]`), post("/transact", `"`+canary+`"`),
		post("/transact", strings.Repeat(canary, 1000)),
		get("/status/"+canary), get("/commitments?from_index="+canary), get("/commitments?mint="+canary), get("/commitments?limit="+canary),
		get("/merkle-root?mint="+canary), get("/"+canary), get("/health?"+canary),
		httptest.NewRequest(canary, "/health", nil), httptest.NewRequest(canary, "/"+canary, nil),
	)
	for _, name := range []string{"Idempotency-Key", "Prefer", "Content-Type", "Content-Encoding", "X-Forwarded-For", "Authorization", "Cookie", "User-Agent", "Origin"} {
		requests = append(requests, post("/transact", transactBody(), name, canary), post("/transact", transactBody(), name, canary+" ;\x7f"))
	}
	requests = append(requests, post("/transact", transactBody(), "X-Request-Id", canary+" 1"))

	submitErrors := map[string]error{
		"accepted": nil, "refused": refusal.New(refusal.ProofInvalid, "no"), "failed": errors.New("no"),
	}
	for outcome, err := range submitErrors {
		d := &domains{
			submit: func(context.Context, submission.Request) (*submission.Submission, error) { return pending(), err },
			wait:   func(context.Context, uuid.UUID) (*submission.Submission, error) { return pending(), nil },
			register: func(viewingkey.Registration) (string, error) {
				return hex32, err
			},
			health: healthy,
		}
		f := newFixture(t, d, func(o *httpapi.Options) { o.CORSOrigins = []string{"https://app.example"} }, enableSwaps)
		for _, r := range requests {
			raw, err := io.ReadAll(r.Body)
			if err != nil {
				t.Fatal(err)
			}
			sent := r.Clone(t.Context())
			sent.RemoteAddr = "203.0.113.99:4242"
			r.Body, sent.Body = io.NopCloser(bytes.NewReader(raw)), io.NopCloser(bytes.NewReader(raw))
			rec := httptest.NewRecorder()
			f.handler.ServeHTTP(rec, sent)
			checkNoCanary(outcome+": the answer to "+r.Method+" "+r.URL.Path, fmt.Sprint(rec.Header(), rec.Body))
		}
		checkNoCanary(outcome+": the log", f.log.String())
		checkNoCanary(outcome+": the observed exchanges", fmt.Sprint(f.observer.exchanges))
		if len(f.observer.exchanges) != len(requests) {
			t.Errorf("%d exchanges observed, want %d", len(f.observer.exchanges), len(requests))
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*httpapi.Options)
		want   string
	}{
		"admission":                      {func(o *httpapi.Options) { o.Admission = nil }, "Admission is missing"},
		"submissions":                    {func(o *httpapi.Options) { o.Submissions = nil }, "Submissions is missing"},
		"commitments":                    {func(o *httpapi.Options) { o.Commitments = nil }, "Commitments is missing"},
		"tree":                           {func(o *httpapi.Options) { o.Tree = nil }, "Tree is missing"},
		"viewing keys":                   {func(o *httpapi.Options) { o.ViewingKeys = nil }, "ViewingKeys is missing"},
		"health":                         {func(o *httpapi.Options) { o.Health = nil }, "Health is missing"},
		"log":                            {func(o *httpapi.Options) { o.Log = nil }, "Log is missing"},
		"observer":                       {func(o *httpapi.Options) { o.Observer = nil }, "Observer is missing"},
		"clock":                          {func(o *httpapi.Options) { o.Now = nil }, "Now is missing"},
		"ids":                            {func(o *httpapi.Options) { o.NewID = nil }, "NewID is missing"},
		"call timeout":                   {func(o *httpapi.Options) { o.CallTimeout = 0 }, "CallTimeout is missing"},
		"profile":                        {func(o *httpapi.Options) { o.Info.Profile = nil }, "Info.Profile with a mint is missing"},
		"compliance key":                 {func(o *httpapi.Options) { o.Info.ComplianceKey = [32]byte{} }, "Info.ComplianceKey is missing"},
		"note bounds":                    {func(o *httpapi.Options) { o.Info.NoteBounds = nil }, "Info.NoteBounds of a transfer is missing"},
		"version":                        {func(o *httpapi.Options) { o.Info.Version = "v1.0" }, `version "v1.0" is not of the form X.Y.Z`},
		"negative wait":                  {func(o *httpapi.Options) { o.WaitDefault = -1 }, "expected 0 or more"},
		"default wait above the maximum": {func(o *httpapi.Options) { o.WaitMax = time.Second }, "WaitMax not below WaitDefault"},
		"rate":                           {func(o *httpapi.Options) { o.RatePerMinute = -1 }, "rate of -1 a minute"},
		"everything is missing":          {func(o *httpapi.Options) { *o = httpapi.Options{} }, "NewID is missing\nCallTimeout is missing"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(&domains{}, &syncBuffer{}, &observed{})
			tt.change(&o)
			if _, err := httpapi.New(o); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one that says %q", err, tt.want)
			}
		})
	}
}

// TestGeneratedClient drives the API with the client that is generated from the
// same document, over a real connection.
func TestGeneratedClient(t *testing.T) {
	t.Parallel()
	var got submission.Request
	d := &domains{
		submit: func(_ context.Context, r submission.Request) (*submission.Submission, error) {
			got = r
			return completed(), nil
		},
		get: func(context.Context, uuid.UUID) (*submission.Submission, error) {
			return nil, refusal.New(refusal.NotFound, "no such submission")
		},
	}
	server := httptest.NewServer(newFixture(t, d).handler)
	defer server.Close()
	client, err := openapi.NewClientWithResponses(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	prefer, key, recipient := "wait=5", "a-key", "somebody"
	answer, err := client.TransactWithResponse(t.Context(), &openapi.TransactParams{Prefer: &prefer, IdempotencyKey: &key}, openapi.TransactRequest{
		ProofBytes: bytes.Repeat([]byte{0xfb}, 256), PublicInputs: bytes.Repeat([]byte{0xff}, 264), Recipient: &recipient,
		EncryptedNotes: &[][]byte{{0xfe, 0xff}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := submission.Request{
		Proof: bytes.Repeat([]byte{0xfb}, 256), PublicInputs: bytes.Repeat([]byte{0xff}, 264), Recipient: recipient,
		Notes: [][]byte{{0xfe, 0xff}}, IdempotencyKey: key, Wait: 2500 * time.Millisecond,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if answer.JSON200 == nil || answer.JSON200.Data.Status != openapi.JobStatusCompleted || *answer.JSON200.Signature != signature.String() {
		t.Errorf("the submission is answered %d, want 200 for a completed one with its signature: %s", answer.StatusCode(), answer.Body)
	}
	status, err := client.GetStatusWithResponse(t.Context(), submissionID)
	if err != nil {
		t.Fatal(err)
	}
	if status.JSON404 == nil || status.JSON404.Code != openapi.ErrorCodeNotFound || !status.JSON404.Error {
		t.Errorf("the status is answered %d, want 404 with not_found: %s", status.StatusCode(), status.Body)
	}
}
