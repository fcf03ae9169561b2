package httpapi_test

import (
	"context"
	"errors"
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
	"github.com/relaypool/relaypool/relay/refusal"
)

// TestInvalidRequestsDoNotReachDomains checks what the API refuses by itself: the fake
// domains have no functions, so calling one panics, which is answered 500.
func TestInvalidRequestsDoNotReachDomains(t *testing.T) {
	t.Parallel()
	header := func(r *http.Request, name, value string) *http.Request {
		r.Header.Set(name, value)
		return r
	}
	tests := map[string]struct {
		request     *http.Request
		wantCode    refusal.Code
		wantMessage string
	}{
		"an empty body": {
			request: post("/transact", ""), wantCode: refusal.InvalidJSON,
			wantMessage: "the body is empty: expected a JSON object",
		},
		"a body that is not JSON": {
			request: post("/transact", "proof=1"), wantCode: refusal.InvalidJSON,
			wantMessage: "the body is not JSON: it goes wrong at byte 1 of 7; expected one JSON object and nothing after it",
		},
		"truncated JSON": {
			request: post("/transact", `{"proof_bytes":`), wantCode: refusal.InvalidJSON,
			wantMessage: "the body is not JSON: it goes wrong at byte 15 of 15; expected one JSON object and nothing after it",
		},
		"text after the object": {
			request: post("/transact", `{} x`), wantCode: refusal.InvalidJSON,
			wantMessage: "the body is not JSON: it goes wrong at byte 4 of 4; expected one JSON object and nothing after it",
		},
		"a second object": {
			request: post("/withdraw", `{}{}`), wantCode: refusal.InvalidJSON,
			wantMessage: "the body is not JSON: it goes wrong at byte 3 of 4; expected one JSON object and nothing after it",
		},
		"an array": {
			request: post("/transact", ` [1]`), wantCode: refusal.InvalidRequest,
			wantMessage: "the body is a JSON array: expected an object",
		},
		"a string": {
			request: post("/viewing-key/register", `"x"`), wantCode: refusal.InvalidRequest,
			wantMessage: "the body is a JSON string: expected an object",
		},
		"null": {
			request: post("/transact", `null`), wantCode: refusal.InvalidRequest,
			wantMessage: "the body is a JSON null: expected an object",
		},
		"nested deeper than the decoder allows": {
			request: post("/transact", strings.Repeat("[", 12000)), wantCode: refusal.InvalidJSON,
			wantMessage: "the body is not JSON: it goes wrong at byte 10001 of 12000; expected one JSON object and nothing after it",
		},
		"no proof": {
			request: post("/transact", `{"public_inputs":""}`), wantCode: refusal.InvalidRequest,
			wantMessage: "proof_bytes is missing: expected a string, bytes in standard base64",
		},
		"a proof of null": {
			request: post("/transact", `{"proof_bytes":null}`), wantCode: refusal.InvalidRequest,
			wantMessage: "proof_bytes is missing: expected a string, bytes in standard base64",
		},
		"a name in another case is not the field": {
			request: post("/transact", `{"PROOF_BYTES":""}`), wantCode: refusal.InvalidRequest,
			wantMessage: "proof_bytes is missing: expected a string, bytes in standard base64",
		},
		"a proof that is an array of numbers": {
			request: post("/transact", transactBody(with("proof_bytes", []int{1}))), wantCode: refusal.InvalidRequest,
			wantMessage: "proof_bytes is a JSON array: expected a string, bytes in standard base64",
		},
		"public inputs that are an object": {
			request: post("/transact", transactBody(with("public_inputs", map[string]any{}))), wantCode: refusal.InvalidRequest,
			wantMessage: "public_inputs is a JSON object: expected a string, bytes in standard base64",
		},
		"no public inputs": {
			request: post("/withdraw", `{"proof_bytes":""}`), wantCode: refusal.InvalidRequest,
			wantMessage: "public_inputs is missing: expected a string, bytes in standard base64",
		},
		"a recipient that is a number": {
			request: post("/withdraw", transactBody(with("recipient", 5))), wantCode: refusal.InvalidRequest,
			wantMessage: "recipient is a JSON number: expected a string, the recipient's address in base58",
		},
		"notes that are a string": {
			request: post("/transact", transactBody(with("encrypted_notes", "AA=="))), wantCode: refusal.InvalidRequest,
			wantMessage: "encrypted_notes is a JSON string: expected an array of strings, each bytes in standard base64",
		},
		"a note that is a boolean": {
			request: post("/transact", transactBody(with("encrypted_notes", []any{"AA==", true}))), wantCode: refusal.InvalidRequest,
			wantMessage: "encrypted_notes[1] is a JSON boolean: expected a string, bytes in standard base64",
		},
		"a note that is null": {
			request: post("/transact", transactBody(with("encrypted_notes", []any{nil}))), wantCode: refusal.InvalidRequest,
			wantMessage: "encrypted_notes[0] is a JSON null: expected a string, bytes in standard base64",
		},
		"base64 of the URL alphabet": {
			request: post("/transact", transactBody(with("proof_bytes", "AA-_"))), wantCode: refusal.InvalidEncoding,
			wantMessage: "proof_bytes is not standard base64: byte 2 is of the URL alphabet; expected + and / instead of - and _",
		},
		"hexadecimal with its prefix": {
			request: post("/transact", transactBody(with("public_inputs", "0x!a"))), wantCode: refusal.InvalidEncoding,
			wantMessage: "public_inputs is not standard base64: byte 2 is outside the alphabet; expected A-Z, a-z, 0-9, + and /, padded with =",
		},
		"base64 with a line break, which a lenient decoder skips": {
			request: post("/transact", transactBody(with("proof_bytes", "AAAA\nAAAA"))), wantCode: refusal.InvalidEncoding,
			wantMessage: "proof_bytes is not standard base64: byte 4 is a line break; expected none",
		},
		"base64 without its padding": {
			request: post("/transact", transactBody(with("proof_bytes", "AA"))), wantCode: refusal.InvalidEncoding,
			wantMessage: "proof_bytes is not standard base64: it has 2 characters; expected a multiple of four, padded with =",
		},
		"base64 with trailing bits that are not zero": {
			request: post("/transact", transactBody(with("proof_bytes", "AB=="))), wantCode: refusal.InvalidEncoding,
			wantMessage: "proof_bytes is not standard base64: its padding is wrong; expected = only at the end, and unused bits zero",
		},
		"base64 padded in the middle": {
			request: post("/transact", transactBody(with("encrypted_notes", []any{"AA==AAAA"}))), wantCode: refusal.InvalidEncoding,
			wantMessage: "encrypted_notes[0] is not standard base64: its padding is wrong; expected = only at the end, and unused bits zero",
		},
		"the retired body of withdraw with a proof and inputs in an object": {
			request:  post("/withdraw", `{"outputs":[{"address":"a","amount":1}],"policy":{"fee_bps":50},"public_inputs":{"root":"00","nf":"00"},"proof_bytes":"00"}`),
			wantCode: refusal.LegacyWithdrawRetired, wantMessage: "this body, with outputs, policy or nf, is of a retired form of POST /withdraw: send proof_bytes and public_inputs, as text, to POST /withdraw or POST /transact; update the client SDK",
		},
		"outputs with a proof and no inputs are not a retired body": {
			request: post("/withdraw", `{"outputs":[],"proof_bytes":"AA=="}`), wantCode: refusal.InvalidRequest,
			wantMessage: "public_inputs is missing: expected a string, bytes in standard base64",
		},
		"the retired body of withdraw": {
			request: post("/withdraw", `{"outputs":[],"policy":{},"nf":"00"}`), wantCode: refusal.LegacyWithdrawRetired,
			wantMessage: "this body, with outputs, policy or nf, is of a retired form of POST /withdraw: send proof_bytes and public_inputs, as text, to POST /withdraw or POST /transact; update the client SDK",
		},
		"a registration without a key": {
			request: post("/viewing-key/register", `{"user_pubkey":"x"}`), wantCode: refusal.InvalidRequest,
			wantMessage: "viewing_key is missing: expected a string, 64 hexadecimal digits",
		},
		"a registration without a wallet": {
			request: post("/viewing-key/register", `{}`), wantCode: refusal.InvalidRequest,
			wantMessage: "user_pubkey is missing: expected a string, the wallet's address in base58",
		},
		"a registration without a signature": {
			request: post("/viewing-key/register", `{"user_pubkey":"x","viewing_key":"y"}`), wantCode: refusal.InvalidRequest,
			wantMessage: "signature is missing: expected a string, the wallet's signature in base64, base58 or hexadecimal",
		},
		"an identifier that is a number": {
			request: post("/viewing-key/register", registerBody(with("identifier", 1))), wantCode: refusal.InvalidRequest,
			wantMessage: "identifier is a JSON number: expected a string, 64 hexadecimal digits",
		},
		"another media type": {
			request: header(post("/transact", transactBody()), "Content-Type", "text/plain"), wantCode: refusal.UnsupportedMediaType,
			wantMessage: "the body's Content-Type is not application/json",
		},
		"a form": {
			request: header(post("/transact", "a=b"), "Content-Type", "application/x-www-form-urlencoded"), wantCode: refusal.UnsupportedMediaType,
			wantMessage: "the body's Content-Type is not application/json",
		},
		"a malformed media type": {
			request: header(post("/transact", transactBody()), "Content-Type", "application/json; charset"), wantCode: refusal.UnsupportedMediaType,
			wantMessage: "the body's Content-Type is not application/json",
		},
		"another charset": {
			request: header(post("/transact", transactBody()), "Content-Type", "application/json; charset=latin1"), wantCode: refusal.UnsupportedMediaType,
			wantMessage: "the body has another charset: expected utf-8",
		},
		"a compressed body": {
			request: header(post("/transact", transactBody()), "Content-Encoding", "gzip"), wantCode: refusal.UnsupportedMediaType,
			wantMessage: "the body has a Content-Encoding: expected none; send it uncompressed",
		},
		"a body of one byte too many": {
			request: post("/transact", transactBody(with("pad", strings.Repeat("x", httpapi.MaxBody-len(transactBody())-len(`,"pad":""`)+1)))), wantCode: refusal.BodyTooLarge,
			wantMessage: "the body is larger than 16384 bytes, the most that this relay reads: send less",
		},
		"a large registration": {
			request: post("/viewing-key/register", strings.Repeat(" ", httpapi.MaxBody+1)), wantCode: refusal.BodyTooLarge,
			wantMessage: "the body is larger than 16384 bytes, the most that this relay reads: send less",
		},
		"a connection that breaks within the body": {
			request: httptest.NewRequest(http.MethodPost, "/transact", io.MultiReader(strings.NewReader(`{"pro`), brokenReader{})), wantCode: refusal.InvalidRequest,
			wantMessage: "the body broke off after 5 bytes: send the whole of it",
		},
		"an id that is not a UUID": {
			request: get("/status/42"), wantCode: refusal.InvalidRequest,
			wantMessage: "id is malformed: expected a UUID of 36 characters, the request_id of a submission",
		},
		"an idempotency key with a space": {
			request: post("/transact", transactBody(), "Idempotency-Key", "a key"), wantCode: refusal.InvalidRequest,
			wantMessage: "Idempotency-Key has 5 bytes: expected 1 to 255 printable ASCII characters without spaces, such as a UUID",
		},
		"an idempotency key that is empty": {
			request: post("/withdraw", transactBody(), "Idempotency-Key", ""), wantCode: refusal.InvalidRequest,
			wantMessage: "Idempotency-Key has 0 bytes: expected 1 to 255 printable ASCII characters without spaces, such as a UUID",
		},
		"an idempotency key that is too long": {
			request: post("/transact", transactBody(), "Idempotency-Key", strings.Repeat("k", 256)), wantCode: refusal.InvalidRequest,
			wantMessage: "Idempotency-Key has 256 bytes: expected 1 to 255 printable ASCII characters without spaces, such as a UUID",
		},
		"two idempotency keys": {
			request: post("/transact", transactBody(), "Idempotency-Key", "a", "Idempotency-Key", "b"), wantCode: refusal.InvalidRequest,
			wantMessage: "Idempotency-Key is present 2 times: expected once",
		},
		"a page whose start is not a number": {
			request: get("/commitments?from_index=x"), wantCode: refusal.InvalidRequest,
			wantMessage: "from_index is malformed: expected one whole number",
		},
		"a page with two limits": {
			request: get("/commitments?limit=1&limit=2"), wantCode: refusal.InvalidRequest,
			wantMessage: "limit is malformed: expected one whole number",
		},
		"a mint that the pool does not have": {
			request: get("/merkle-root?mint=dollars"), wantCode: refusal.UnknownMint,
			wantMessage: "mint is not one of this pool's: expected an address that GET / lists under pool.mints, or none; received 7 characters",
		},
		"an unknown commitment level": {
			request: get("/merkle-root?commitment=finalized"), wantCode: refusal.InvalidRequest,
			wantMessage: "commitment has an unknown value: expected confirmed or processed, or none for confirmed",
		},
		"a processed root of a mint that the pool does not have": {
			request: get("/merkle-root?commitment=processed&mint=dollars"), wantCode: refusal.UnknownMint,
			wantMessage: "mint is not one of this pool's: expected an address that GET / lists under pool.mints, or none; received 7 characters",
		},
		"an unknown route": {
			request: get("/transactions"), wantCode: refusal.RouteNotFound,
			wantMessage: "this path is not a route of the relay: GET / lists the routes",
		},
		"a route with a slash after it": {
			request: get("/health/"), wantCode: refusal.RouteNotFound,
			wantMessage: "this path is not a route of the relay: GET / lists the routes",
		},
		"a status without an id": {
			request: get("/status/"), wantCode: refusal.RouteNotFound,
			wantMessage: "this path is not a route of the relay: GET / lists the routes",
		},
		"an unknown method, on no route": {
			request: httptest.NewRequest("BREW", "/coffee", nil), wantCode: refusal.RouteNotFound,
			wantMessage: "this path is not a route of the relay: GET / lists the routes",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, &domains{})
			resp, body := f.do(t, tt.request)
			want := map[string]any{"error": true, "code": string(tt.wantCode), "message": tt.wantMessage}
			if diff := cmp.Diff(want, object(t, body)); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
			if resp.StatusCode != tt.wantCode.HTTPStatus() {
				t.Errorf("status %d, want %d", resp.StatusCode, tt.wantCode.HTTPStatus())
			}
			if strings.Contains(f.log.String(), `"level":"ERROR"`) {
				t.Errorf("a client error is logged as an error of the relay: %s", f.log)
			}
		})
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) {
	return 0, errors.New("read tcp 10.0.0.1:8080->203.0.113.7:51234: connection reset by peer")
}

func TestValidBodies(t *testing.T) {
	t.Parallel()
	full := func() string {
		return transactBody(with("pad", strings.Repeat("x", httpapi.MaxBody-len(transactBody())-len(`,"pad":""`))))
	}
	tests := map[string]*http.Request{
		"without a media type":        httptest.NewRequest(http.MethodPost, "/withdraw", strings.NewReader(transactBody())),
		"with a charset":              post("/withdraw", transactBody()),
		"with space around it":        post("/withdraw", " \n"+transactBody()+"\n "),
		"of exactly the maximum size": post("/withdraw", full()),
		"with a field twice":          post("/withdraw", strings.Replace(transactBody(), `{`, `{"proof_bytes":"!",`, 1)),
		"not compressed":              post("/withdraw", transactBody(), "Content-Encoding", "identity"),
	}
	tests["with a charset"].Header.Set("Content-Type", `application/json; charset="UTF-8"`)
	for name, r := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp, body := newFixture(t, submitReturns(pending(), nil)).do(t, r)
			if resp.StatusCode != http.StatusAccepted {
				t.Errorf("status %d, want 202: %s", resp.StatusCode, body)
			}
		})
	}
}

// TestEveryRefusal checks the answer to each code that a domain returns.
// Codes that only the API itself sends have their own tests.
func TestEveryRefusal(t *testing.T) {
	t.Parallel()
	for _, code := range refusal.All() {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			ref := refusal.New(code, "what is wrong").With("nullifier_index", 1).Because(errors.New("the operator's reason"))
			d := submitReturns(nil, ref)
			d.register = func(viewingkey.Registration) (string, error) { return "", ref }
			d.get = func(context.Context, uuid.UUID) (*submission.Submission, error) { return nil, ref }
			f := newFixture(t, d)
			r := post("/transact", transactBody())
			switch code.HTTPStatus() {
			case http.StatusNotFound:
				r = get("/status/" + submissionID.String())
			case http.StatusUnauthorized:
				r = post("/viewing-key/register", registerBody())
			case http.StatusMethodNotAllowed, http.StatusNotImplemented:
				return
			}
			resp, body := f.do(t, r)
			want := map[string]any{"error": true, "code": string(code), "message": "what is wrong", "nullifier_index": 1.0}
			if diff := cmp.Diff(want, object(t, body)); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
			if resp.StatusCode != code.HTTPStatus() {
				t.Errorf("status %d, want %d", resp.StatusCode, code.HTTPStatus())
			}
			if strings.Count(f.log.String(), "the operator's reason") != 1 {
				t.Errorf("the cause is not logged exactly once: %s", f.log)
			}
		})
	}
}

func TestRetryAfterRoundsUp(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		after time.Duration
		code  refusal.Code
		want  string
	}{
		"a whole second":                     {time.Second, refusal.PoolBusy, "1"},
		"a fraction":                         {400 * time.Millisecond, refusal.PoolBusy, "1"},
		"a second and a bit":                 {1001 * time.Millisecond, refusal.PoolBusy, "2"},
		"a temporary refusal without a time": {0, refusal.PoolBusy, "5"},
		"a client error without a time":      {0, refusal.RootNotFound, ""},
		"a client error with a time":         {time.Second, refusal.NullifierReserved, "1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp, _ := newFixture(t, submitReturns(nil, refusal.New(tt.code, "no").Retry(tt.after))).do(t, post("/transact", transactBody()))
			if got := resp.Header.Get("Retry-After"); got != tt.want {
				t.Errorf("Retry-After is %q, want %q", got, tt.want)
			}
		})
	}
}

// TestStaleRootBody checks an error with fields that clients read in addition to code and message.
func TestStaleRootBody(t *testing.T) {
	t.Parallel()
	message := "RootNotFound (stale Merkle root): proof root 1069673dcdb12263 not in root history (current root 0101010101010101)"
	ref := refusal.New(refusal.RootNotFound, "%s", message).With("current_root", hex32).With("next_index", 8)
	resp, body := newFixture(t, submitReturns(nil, ref)).do(t, post("/transact", transactBody()))
	want := map[string]any{"current_root": hex32, "next_index": 8.0, "error": true, "code": "root_not_found", "message": message}
	if diff := cmp.Diff(want, object(t, body)); diff != "" || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("status %d, body (-want +got):\n%s", resp.StatusCode, diff)
	}
}

// TestMethodsOfRoutes tries every method on every route.
func TestMethodsOfRoutes(t *testing.T) {
	t.Parallel()
	routes := map[string]string{
		"/": "GET, HEAD", "/status/" + submissionID.String(): "GET, HEAD", "/commitments": "GET, HEAD", "/merkle-root": "GET, HEAD",
		"/backlog": "GET, HEAD", "/compliance-key": "GET, HEAD", "/health": "GET, HEAD",
		"/transact": "POST", "/withdraw": "POST", "/transact_swap": "POST", "/viewing-key/register": "POST",
	}
	methods := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "BREW"}
	f := newFixture(t, &domains{})
	for path, allowed := range routes {
		for _, method := range methods {
			if strings.Contains(allowed, method) {
				continue
			}
			r := httptest.NewRequest(method, "/", nil)
			r.URL.Path = path
			resp, body := f.do(t, r)
			if resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != allowed {
				t.Errorf("%s %s: status %d, Allow %q; want 405, %q", method, path, resp.StatusCode, resp.Header.Get("Allow"), allowed)
			}
			if method == http.MethodHead {
				continue
			}
			want := map[string]any{"error": true, "code": "method_not_allowed", "message": "this route does not have that method: expected " + allowed}
			if diff := cmp.Diff(want, object(t, body)); diff != "" {
				t.Errorf("%s %s: body (-want +got):\n%s", method, path, diff)
			}
		}
	}
}

func TestHeadIsAnsweredAsGet(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(newFixture(t, &domains{health: healthy}).handler)
	defer server.Close()
	resp, err := server.Client().Head(server.URL + "/health")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK || resp.ContentLength <= 0 {
		t.Errorf("status %d with length %d, want 200 and the length of the answer to GET", resp.StatusCode, resp.ContentLength)
	}
}
