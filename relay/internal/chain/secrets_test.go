package chain

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/rpc"
)

// TestCredentialsOfEndpointsAppearNowhere: the endpoints' URLs have credentials in every part.
// Errors, logs, status and the formatting of every type show only the endpoints' names, whatever
// an endpoint answers.
func TestCredentialsOfEndpointsAppearNowhere(t *testing.T) {
	t.Parallel()
	echo := fmt.Sprintf(`{"code":-32602,"message":"key %s of %s:%s@host/v2/%s is not valid"}`, canaryQuery, canaryUser, canaryPass, canaryPath)
	fault := func(json string) string { return `{"jsonrpc":"2.0","id":1,"error":` + json + `}` }
	result := func(json string) string { return `{"jsonrpc":"2.0","id":1,"result":` + json + `}` }
	tests := map[string]struct {
		url    string // empty for a server that answers
		status int    // 0 is 200
		body   string
	}{
		"no listener":                   {url: "http://" + closedAddress(t)},
		"HTTP 403":                      {status: 403, body: canaryQuery},
		"HTTP 500":                      {status: 500, body: canaryPath},
		"a refusal that echoes the URL": {body: fault(echo)},
		"an error that echoes the URL":  {body: fault(strings.Replace(echo, "-32602", "-32603", 1))},
		"another chain":                 {body: result(fmt.Sprintf("%q", solana.Hash{66}))},
		"an invalid hash":               {body: result(`"` + canaryPath + `"`)},
		"TLS to a server without TLS":   {url: strings.Replace(startServer(t, 200, ""), "http:", "https:", 1)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := test.url
			if target == "" {
				target = startServer(t, cmp.Or(test.status, http.StatusOK), test.body)
			}
			url := withCanaries(t, target)
			var text strings.Builder
			log := &lockedBuffer{}
			o := EndpointsOptions{
				Endpoints: []Endpoint{
					{Name: "first", URL: url},
					{Name: "second", URL: url, WebSocketURL: strings.Replace(url, "http", "ws", 1), Roles: []Role{RoleRead, RoleSubmit, RoleArchive}},
				},
				Genesis: hashA, Now: time.Now, Rand: func() float64 { return 0 }, Timeout: time.Second,
				Log: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			}
			e, err := NewEndpoints(o)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			for i, err := range everyCall(t.Context(), e) {
				if err == nil {
					t.Fatalf("call %d returned no error", i)
				}
				for _, e := range unwrapAll(err) {
					fmt.Fprintf(&text, "%v %+v %#v %T\n", e, e, e, e)
				}
			}
			_, err = e.GenesisHash(t.Context())
			for _, e := range unwrapAll(err) {
				fmt.Fprintf(&text, "%v %+v %#v %T\n", e, e, e, e)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			var running sync.WaitGroup
			running.Go(func() { e.Run(ctx) })
			running.Go(func() { e.Subscribe(ctx, treeKey, func(uint64) {}) })
			running.Wait()

			plain := rpc.Options{URL: url, HTTP: http.DefaultClient, Now: time.Now}
			status := e.Status()
			for _, v := range []any{e, *e.all[0].clients[0], status, o, o.Endpoints, o.Endpoints[1], &o.Endpoints[1], plain, &plain} {
				fmt.Fprintf(&text, "%v %+v %#v %s\n", v, v, v, v)
				o.Log.Info("Printed", "value", v)
				slog.New(slog.NewTextHandler(&text, nil)).Info("Printed", "value", v)
			}
			for _, v := range []any{status, o.Endpoints} {
				encoded, err := json.Marshal(v)
				if err != nil {
					t.Fatal(err)
				}
				text.Write(encoded)
			}
			for _, line := range append(strings.Split(text.String(), "\n"), strings.Split(log.String(), "\n")...) {
				checkCanaries(t, line)
			}
			if !strings.Contains(text.String(), "first") || !strings.Contains(log.String(), "second") {
				t.Error("the printed values do not name the first endpoint, or the log does not name the second")
			}
		})
	}
}

// everyCall makes each call of Endpoints twice, all at once.
func everyCall(ctx context.Context, e *Endpoints) []error {
	keys := []solana.PublicKey{keyA}
	errorOf2 := func(_ any, err error) error { return err }
	errorOf3 := func(_, _ any, err error) error { return err }
	calls := []func() error{
		func() error { return errorOf2(e.LatestBlockhash(ctx)) },
		func() error { return errorOf3(e.Accounts(ctx, keys, onchain.Confirmed, 1)) },
		func() error { return errorOf2(e.CorroboratedAccount(ctx, keyA)) },
		func() error { return errorOf3(e.Balance(ctx, keyA, 1)) },
		func() error { return errorOf3(e.Balances(ctx, keys)) },
		func() error { return errorOf3(e.HighestBalances(ctx, keys)) },
		func() error { return errorOf2(e.Simulate(ctx, raw, true, 1)) },
		func() error { return errorOf2(e.PriorityFees(ctx, keys)) },
		func() error { return errorOf3(e.Statuses(ctx, []solana.Signature{sigA})) },
		func() error { return errorOf2(e.Search(ctx, []solana.Signature{sigA})) },
		func() error { return errorOf2(e.SignaturesFor(ctx, keyA, onchain.Finalized, sigA, sigB, 1)) },
		func() error { return errorOf2(e.Blocks(ctx, 1, 2)) },
		func() error { return errorOf2((&History{Endpoints: e}).Block(ctx, 1, solana.PublicKey{1})) },
		func() error { return errorOf2(e.Payment(ctx, sigA, keyA)) },
		func() error { return errorOf2(e.Slot(ctx, onchain.Finalized)) },
		func() error { return e.Send(ctx, raw, onchain.Sending{First: true}, 1) },
		func() error { return e.Send(ctx, raw, onchain.Sending{}, 1) },
	}
	errs := make([]error, 2*len(calls))
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = calls[i%len(calls)]() })
	}
	wg.Wait()
	return errs
}

// unwrapAll lists the error and all errors that it wraps or joins.
func unwrapAll(err error) (out []error) {
	if err == nil {
		return nil
	}
	out = append(out, err)
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			out = append(out, unwrapAll(e)...)
		}
		return out
	}
	return append(out, unwrapAll(errors.Unwrap(err))...)
}

// lockedBuffer is a buffer that is safe for concurrent use.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var _ io.Writer = (*lockedBuffer)(nil)
