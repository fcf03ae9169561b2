package rpc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/freeport"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const shortTimeout = 500 * time.Millisecond

// timeoutFor returns a short timeout for an answer that hangs, and one that is long enough on a
// busy machine for any other answer.
func timeoutFor(a answer) time.Duration {
	if a.hang {
		return shortTimeout
	}
	return 30 * time.Second
}

// signature is a valid result of sendTransaction.
var signature = result(`"` + solana.Signature{1}.String() + `"`)

func TestErrorsOfReads(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		answer        answer
		wantKind      string // of onchain.Unavailable
		wantRPC       int    // code of onchain.RPCError
		wantErr       error  // another error
		wantTransient bool   // another endpoint may answer
	}{
		"HTTP 429":                            {answer: answer{status: 429, body: `{"error":"slow down"}`}, wantKind: onchain.KindRateLimited, wantTransient: true},
		"HTTP 429 with a JSON-RPC error":      {answer: answer{status: 429, body: `{"jsonrpc":"2.0","error":{"code":-32600,"message":"x"}}`}, wantKind: onchain.KindRateLimited, wantTransient: true},
		"429 inside an answer of status 200":  {answer: fault(`{"code":429,"message":"Too many requests"}`), wantKind: onchain.KindRateLimited, wantTransient: true},
		"HTTP 500":                            {answer: answer{status: 500}, wantKind: onchain.KindServerError, wantTransient: true},
		"HTTP 502 with a page":                {answer: answer{status: 502, body: "<html>"}, wantKind: onchain.KindServerError, wantTransient: true},
		"no answer":                           {answer: answer{hang: true}, wantKind: onchain.KindTimeout, wantTransient: true},
		"garbage":                             {answer: answer{body: "<html>ok</html>"}, wantKind: onchain.KindBadResponse, wantTransient: true},
		"an empty body":                       {answer: answer{}, wantKind: onchain.KindBadResponse, wantTransient: true},
		"neither result nor error":            {answer: answer{body: `{"jsonrpc":"2.0","id":1}`}, wantKind: onchain.KindBadResponse, wantTransient: true},
		"a null result":                       {answer: result(`null`), wantKind: onchain.KindBadResponse, wantTransient: true},
		"a result of another kind":            {answer: result(`"12"`), wantKind: onchain.KindBadResponse, wantTransient: true},
		"no value":                            {answer: result(`{"context":{"slot":5}}`), wantKind: onchain.KindBadResponse, wantTransient: true},
		"a null value":                        {answer: result(`{"context":{"slot":5},"value":null}`), wantKind: onchain.KindBadResponse, wantTransient: true},
		"no context slot":                     {answer: result(`{"context":{},"value":5}`), wantKind: onchain.KindBadResponse, wantTransient: true},
		"a node that is unhealthy":            {answer: fault(`{"code":-32005,"message":"Node is behind by 42 slots","data":{"numSlotsBehind":42}}`), wantKind: onchain.KindNodeBehind, wantTransient: true},
		"minContextSlot not reached":          {answer: fault(`{"code":-32016,"message":"Minimum context slot has not been reached","data":{"contextSlot":4}}`), wantKind: onchain.KindNodeBehind, wantTransient: true},
		"an internal error":                   {answer: fault(`{"code":-32603,"message":"Internal error"}`), wantKind: onchain.KindServerError, wantTransient: true},
		"an unknown code":                     {answer: fault(`{"code":-31999,"message":"?"}`), wantKind: onchain.KindServerError, wantTransient: true},
		"HTTP 403":                            {answer: answer{status: 403, body: "forbidden"}, wantKind: onchain.KindRejected},
		"HTTP 404":                            {answer: answer{status: 404}, wantKind: onchain.KindRejected},
		"invalid params":                      {answer: fault(`{"code":-32602,"message":"Invalid param"}`), wantRPC: -32602},
		"invalid params with HTTP 400":        {answer: answer{status: 400, body: `{"jsonrpc":"2.0","error":{"code":-32602,"message":"x"}}`}, wantRPC: -32602},
		"an unknown method":                   {answer: fault(`{"code":-32601,"message":"Method not found"}`), wantRPC: -32601},
		"a block that was cleaned up":         {answer: fault(`{"code":-32001,"message":"Block 3 cleaned up"}`), wantErr: onchain.ErrBlockPruned},
		"a skipped slot":                      {answer: fault(`{"code":-32007,"message":"Slot 3 was skipped"}`), wantErr: onchain.ErrSlotSkipped},
		"a slot missing in long-term storage": {answer: fault(`{"code":-32009,"message":"Slot 3 was skipped, or missing"}`), wantErr: onchain.ErrSlotSkipped},
		"a block that is not available yet":   {answer: fault(`{"code":-32004,"message":"Block not available for slot 3"}`), wantKind: onchain.KindNotYet, wantTransient: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, test.answer)
			c := newClient(t, Options{URL: n.URL, Timeout: timeoutFor(test.answer)})
			lamports, slot, err := c.Balance(t.Context(), solana.PublicKey{1}, 0)
			if lamports != 0 || slot != 0 || err == nil {
				t.Fatalf("balance is %d at slot %d with error %v, want only an error", lamports, slot, err)
			}
			checkError(t, err, test.wantKind, test.wantRPC, test.wantErr)
			if calls, _, _ := n.received(); calls != 1 {
				t.Errorf("%d calls, want one", calls)
			}
			if got := onchain.Transient(err); got != test.wantTransient {
				t.Errorf("error is transient: %t, want %t", got, test.wantTransient)
			}
		})
	}
}

func checkError(t *testing.T, err error, kind string, code int, other error) {
	t.Helper()
	if got := errors.Is(err, onchain.ErrUnavailable); got != (kind != "") {
		t.Errorf("error %v is unavailable: %v, want %v", err, got, kind != "")
	}
	var u *onchain.Unavailable
	if kind != "" && (!errors.As(err, &u) || u.Kind != kind) {
		t.Errorf("error is %v, want an unavailable error of kind %s", err, kind)
	}
	var r *onchain.RPCError
	if code != 0 && (!errors.As(err, &r) || r.Code != code) {
		t.Errorf("error is %v, want RPC error %d", err, code)
	}
	if other != nil && !errors.Is(err, other) {
		t.Errorf("error is %v, want %v", err, other)
	}
}

func TestErrorsOfSends(t *testing.T) {
	t.Parallel()
	preflight := func(err string) answer {
		return fault(`{"code":-32002,"message":"Transaction simulation failed","data":{"accounts":null,"err":` + err + `,"logs":["Program log: canary"],"unitsConsumed":1}}`)
	}
	tests := map[string]struct {
		answer   answer
		wantSend *shieldpool.TransactionError
		wantKind string
		wantRPC  int
	}{
		"accepted":                                 {answer: signature},
		"a program's error in preflight":           {answer: preflight(`{"InstructionError":[2,{"Custom":4097}]}`), wantSend: &shieldpool.TransactionError{Kind: "InstructionError", Instruction: 2, Detail: "Custom", Custom: 0x1001}},
		"an expired blockhash in preflight":        {answer: preflight(`"BlockhashNotFound"`), wantSend: &shieldpool.TransactionError{Kind: "BlockhashNotFound"}},
		"processed already":                        {answer: preflight(`"AlreadyProcessed"`), wantSend: &shieldpool.TransactionError{Kind: "AlreadyProcessed"}},
		"an account below the rent-exempt minimum": {answer: preflight(`{"InsufficientFundsForRent":{"account_index":6}}`), wantSend: &shieldpool.TransactionError{Kind: "InsufficientFundsForRent", Account: 6}},
		"an invalid signature":                     {answer: fault(`{"code":-32003,"message":"Transaction signature verification failure"}`), wantSend: &shieldpool.TransactionError{Kind: "SignatureFailure"}},
		"a preflight failure without an error":     {answer: fault(`{"code":-32002,"message":"Transaction simulation failed"}`), wantRPC: -32002},
		"a preflight failure with a null error":    {answer: preflight(`null`), wantRPC: -32002},
		"too large":                                {answer: fault(`{"code":-32602,"message":"base64 encoded too large"}`), wantRPC: -32602},
		"a node that is behind the blockhash":      {answer: fault(`{"code":-32016,"message":"Minimum context slot has not been reached"}`), wantKind: onchain.KindNodeBehind},
		"an unhealthy node":                        {answer: fault(`{"code":-32005,"message":"Node is unhealthy"}`), wantKind: onchain.KindNodeBehind},
		"a timeout, after which it may land":       {answer: answer{hang: true}, wantKind: onchain.KindTimeout},
		"HTTP 502, after which it may land":        {answer: answer{status: 502}, wantKind: onchain.KindServerError},
		"HTTP 429":                                 {answer: answer{status: 429}, wantKind: onchain.KindRateLimited},
		"a result that is no signature":            {answer: result(`{"ok":true}`), wantKind: onchain.KindBadResponse},
		"an internal error, maybe after sending":   {answer: fault(`{"code":-32603,"message":"Internal error"}`), wantKind: onchain.KindServerError},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, test.answer)
			c := newClient(t, Options{URL: n.URL, Timeout: timeoutFor(test.answer)})
			err := c.Send(t.Context(), []byte{1}, true, 9)
			if calls, _, _ := n.received(); calls != 1 {
				t.Errorf("%d calls, want 1: the client must not repeat a send", calls)
			}
			var s *onchain.SendError
			if errors.As(err, &s) != (test.wantSend != nil) {
				t.Fatalf("error is %v, want send error %v", err, test.wantSend)
			}
			if s != nil {
				if diff := cmp.Diff(test.wantSend, s.Err); diff != "" {
					t.Errorf("transaction error differs (-want +got):\n%s", diff)
				}
				return
			}
			if (err == nil) != (test.wantKind == "" && test.wantRPC == 0) {
				t.Fatalf("error is %v, want kind %q or RPC error %d", err, test.wantKind, test.wantRPC)
			}
			checkError(t, err, test.wantKind, test.wantRPC, nil)
		})
	}
}

func TestEveryCallIsObserved(t *testing.T) {
	t.Parallel()
	n := newNode(t, answer{status: 503}, answer{body: "garbage"}, result(`{"context":{"slot":7},"value":42}`))
	var mu sync.Mutex
	var seen []string
	c := newClient(t, Options{URL: n.URL, Observe: func(method, class string, took time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		if took < 0 {
			t.Errorf("%s took %s", method, took)
		}
		seen = append(seen, method+" "+class)
	}})
	for range 2 {
		if lamports, slot, err := c.Balance(t.Context(), solana.PublicKey{1}, 0); !errors.Is(err, onchain.ErrUnavailable) {
			t.Errorf("balance is %d at slot %d with error %v, want only an error", lamports, slot, err)
		}
	}
	lamports, slot, err := c.Balance(t.Context(), solana.PublicKey{1}, 0)
	if err != nil || lamports != 42 || slot != 7 {
		t.Errorf("balance is %d at slot %d with error %v, want 42 at slot 7", lamports, slot, err)
	}
	if diff := cmp.Diff([]string{"getBalance server_error", "getBalance bad_response", "getBalance ok"}, seen); diff != "" {
		t.Errorf("observed attempts differ (-want +got):\n%s", diff)
	}
}

func TestCancelledCallIsUnavailable(t *testing.T) {
	t.Parallel()
	call := map[string]func(*Client, context.Context) error{
		"read": func(c *Client, ctx context.Context) error {
			_, _, err := c.Balance(ctx, solana.PublicKey{1}, 0)
			return err
		},
		"send": func(c *Client, ctx context.Context) error { return c.Send(ctx, []byte{1}, false, 0) },
	}
	for name, do := range call {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, answer{hang: true})
			ctx, cancel := context.WithTimeout(t.Context(), shortTimeout)
			defer cancel()
			err := do(newClient(t, Options{URL: n.URL}), ctx)
			checkError(t, err, onchain.KindCancelled, 0, context.DeadlineExceeded)
			if calls, _, _ := n.received(); calls != 1 {
				t.Errorf("%d calls, want 1", calls)
			}
		})
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	elsewhere := newNode(t, signature)
	n := newNode(t, answer{status: http.StatusTemporaryRedirect})
	n.Config.Handler = http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect)
	err := newClient(t, Options{URL: n.URL}).Send(t.Context(), []byte{1}, false, 0)
	checkError(t, err, onchain.KindRejected, 0, nil)
	if calls, _, _ := elsewhere.received(); calls != 0 {
		t.Error("the signed transaction was sent to the target of the redirect")
	}
}

// The canaries stand for the parts of a URL in which some provider puts a secret.
const (
	canaryUser  = "canary-user"
	canaryPass  = "canary-pass"
	canaryPath  = "canary-path-0123456789"
	canaryQuery = "canary-query"
)

func withCanaries(t *testing.T, base string) string {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(canaryUser, canaryPass)
	u.Path = "/v2/" + canaryPath
	u.RawQuery = "api-key=" + canaryQuery
	return u.String()
}

func TestCredentialsOfTheURLAppearNowhere(t *testing.T) {
	t.Parallel()
	closed := "http://" + closedAddress(t)
	echo := fmt.Sprintf(`{"code":-32602,"message":"key %s of %s:%s@host/v2/%s is not valid"}`, canaryQuery, canaryUser, canaryPass, canaryPath)
	tests := map[string]struct {
		url    string // empty for that of a test node
		answer answer
	}{
		"connection refused":                    {url: closed},
		"a host that does not resolve":          {url: "http://relaypool.invalid"},
		"TLS to a server without TLS":           {url: strings.Replace(newNode(t, answer{}).URL, "http:", "https:", 1)},
		"timeout":                               {answer: answer{hang: true}},
		"HTTP 429":                              {answer: answer{status: 429}},
		"HTTP 403":                              {answer: answer{status: 403, body: canaryQuery}},
		"garbage that echoes the key":           {answer: answer{body: canaryQuery}},
		"a refusal that echoes the URL":         {answer: fault(echo)},
		"an internal error that echoes the URL": {answer: fault(strings.Replace(echo, "-32602", "-32603", 1))},
		"a result of another kind":              {answer: result(`"` + canaryPath + `"`)},
		"a malformed transaction error":         {answer: result(`{"context":{"slot":1},"value":[{"slot":1,"confirmationStatus":"confirmed","err":["` + canaryPath + `"]}]}`)},
		"an account whose owner is a secret":    {answer: result(`{"context":{"slot":1},"value":[{"owner":"` + canaryPath + `"}]}`)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := test.url
			if target == "" {
				target = newNode(t, test.answer).URL
			}
			c := newClient(t, Options{URL: withCanaries(t, target), Timeout: shortTimeout})
			_, _, err1 := c.Accounts(t.Context(), []solana.PublicKey{{1}}, onchain.Confirmed, 0)
			_, _, err2 := c.Statuses(t.Context(), []solana.Signature{{1}}, true)
			for _, err := range []error{err1, err2, c.Send(t.Context(), []byte{1}, true, 0)} {
				if err == nil {
					t.Fatal("a call returned no error")
				}
				for e := err; e != nil; e = errors.Unwrap(e) {
					checkCanaries(t, fmt.Sprintf("%v %+v %#v", e, e, e))
				}
			}
			checkCanaries(t, fmt.Sprintf("%v %+v %#v", c, c, c))
		})
	}
}

func checkCanaries(t *testing.T, text string) {
	t.Helper()
	if strings.Contains(text, "canary") {
		t.Errorf("%q shows a part of the URL", text)
	}
}

// closedAddress returns an address without a listener.
func closedAddress(t *testing.T) string {
	t.Helper()
	addresses, err := freeport.Find(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return addresses[0]
}

func TestBasicAuthenticationComesFromTheURL(t *testing.T) {
	t.Parallel()
	n := newNode(t, result(`5`))
	if _, err := newClient(t, Options{URL: withCanaries(t, n.URL)}).Slot(t.Context(), onchain.Confirmed); err != nil {
		t.Fatal(err)
	}
	r := http.Request{Header: n.headers}
	if user, pass, _ := r.BasicAuth(); user != canaryUser || pass != canaryPass {
		t.Error("the endpoint did not get the credentials")
	}
}

func TestNewRefusesInvalidOptions(t *testing.T) {
	t.Parallel()
	full := Options{URL: "https://rpc.example", HTTP: http.DefaultClient, Now: time.Now}
	tests := map[string]struct{ change func(*Options) }{
		"no URL":                    {func(o *Options) { o.URL = "" }},
		"a URL without a host":      {func(o *Options) { o.URL = "https:///" + canaryPath }},
		"another scheme":            {func(o *Options) { o.URL = "wss://" + canaryPath }},
		"a URL that does not parse": {func(o *Options) { o.URL = "https://" + canaryUser + "\x7f" + canaryPath }},
		"no HTTP client":            {func(o *Options) { o.HTTP = nil }},
		"no clock":                  {func(o *Options) { o.Now = nil }},
		"a negative timeout":        {func(o *Options) { o.Timeout = -1 }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := full
			test.change(&o)
			c, err := New(o)
			if err == nil || c != nil {
				t.Fatalf("options with %s are accepted", name)
			}
			checkCanaries(t, err.Error())
		})
	}
	if _, err := New(full); err != nil {
		t.Errorf("full options are refused: %v", err)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		header string
		want   time.Duration
	}{
		"seconds":           {"7", 7 * time.Second},
		"a date":            {now.Add(time.Minute).Format(http.TimeFormat), time.Minute},
		"a past date":       {now.Add(-time.Minute).Format(http.TimeFormat), 0},
		"no header":         {"", 0},
		"a word":            {"soon", 0},
		"a negative number": {"-5", 0},
		"a huge number":     {"99999999999999999999", 0},
	}
	for name, test := range tests {
		if got := retryAfter(test.header, now); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
