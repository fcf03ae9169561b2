package localnet_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/fault"
)

// socketClient is a client's WebSocket connection.
type socketClient struct {
	*websocket.Conn
	t testing.TB
}

// dial opens a WebSocket to the fixture's endpoint.
func (f *fixture) dial() *socketClient {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), longTimeout)
	defer cancel()
	conn, response, err := websocket.Dial(ctx, f.url, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	if response.Body != nil {
		_ = response.Body.Close()
	}
	f.t.Cleanup(func() { _ = conn.CloseNow() })
	return &socketClient{conn, f.t}
}

func (l *socketClient) write(text string) {
	l.t.Helper()
	if err := l.Write(context.Background(), websocket.MessageText, []byte(text)); err != nil {
		l.t.Fatal(err)
	}
}

// receive waits for the next message.
func (l *socketClient) receive() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), longTimeout)
	defer cancel()
	_, raw, err := l.Read(ctx)
	return string(raw), err
}

// expect waits for the next message and compares it with want.
func (l *socketClient) expect(want string) {
	l.t.Helper()
	got, err := l.receive()
	if err != nil {
		l.t.Fatalf("got error %v, want %s", err, want)
	}
	if diff := cmp.Diff(decodeGeneric(l.t, []byte(want)), decodeGeneric(l.t, []byte(got))); diff != "" {
		l.t.Errorf("message (-want +got):\n%s", diff)
	}
}

// ask makes a call and compares the answer with want, which is the member result or error.
func (l *socketClient) ask(method, params, want string) {
	l.t.Helper()
	l.write(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`)
	l.expect(`{"jsonrpc":"2.0","id":1,` + want + `}`)
}

// expectEnd checks that the connection ends without another message.
func (l *socketClient) expectEnd() {
	l.t.Helper()
	if got, err := l.receive(); err == nil || errors.Is(err, context.DeadlineExceeded) {
		l.t.Errorf("got %q with error %v, want a closed connection", got, err)
	}
}

func notificationJSON(method, result, id string) string {
	return `{"jsonrpc":"2.0","method":"` + method + `","params":{"result":` + result + `,"subscription":` + id + `}}`
}

func TestAChangedAccountIsNotified(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	l := f.dial()
	to := address("to").String()
	l.ask("accountSubscribe", `["`+to+`",{"commitment":"confirmed","encoding":"base64"}]`, `"result":0`)
	f.send(f.sign(f.blockhash(rpc.CommitmentProcessed), f.transfer(1_000_000)))
	f.Advance(2)
	accountNotification := func(slot, lamports string) string {
		return notificationJSON("accountNotification", `{"context":{"slot":`+slot+`},"value":{"data":["","base64"],"executable":false,"lamports":`+
			lamports+`,"owner":"11111111111111111111111111111111","rentEpoch":18446744073709551615,"space":0}}`, "0")
	}
	l.expect(accountNotification("33", "1000000"))
	// A fork undoes the transfer. The notification has the earlier state: no account.
	if _, err := f.Fork(3, nil); err != nil {
		t.Fatal(err)
	}
	l.expect(accountNotification("36", "0"))
}

func TestSocketsAnswerAsAgaveDoes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	l := f.dial()
	to := address("to").String()
	const invalid = `"error":{"code":-32602,"message":`
	tests := map[string]struct{ method, params, want string }{
		"an unknown encoding": {"accountSubscribe", `["` + to + `",{"encoding":"hex"}]`, invalid + "\"Invalid params: parameter 2: unknown variant `hex`, expected `base64`\"}"},
		"no parameters":       {"accountSubscribe", `[]`, invalid + "\"`params` should have at least 1 argument(s)\"}"},
		"a method of HTTP":    {"getSlot", `[]`, `"error":{"code":-32601,"message":"Method not found"}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			client := &socketClient{l.Conn, t}
			client.ask(test.method, test.params, test.want)
		})
	}
	if out := f.call("accountSubscribe", `["`+to+`"]`); out.Error == nil || out.Error.Code != -32601 {
		t.Errorf("accountSubscribe over HTTP gives %+v, want method not found", out)
	}
	l.write(`{`)
	l.expect(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`)
	l.write(strings.Repeat(" ", 4097))
	l.expectEnd()
}

func TestSocketFaults(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	faults := func(rules ...fault.Rule) {
		if err := f.Endpoint("faulty").SetFaults(rules); err != nil {
			t.Fatal(err)
		}
	}
	faulty := f.withFaults()
	to := `["` + address("to").String() + `",{"commitment":"processed"}]`
	// pay changes the account in the open slot and closes the slot.
	pay := func() {
		f.send(f.sign(f.blockhash(rpc.CommitmentProcessed), f.transfer(1_000_000)))
		f.Advance(1)
	}
	receiveLamports := func(l *socketClient) (lamports uint64) {
		got, err := l.receive()
		if err != nil {
			t.Fatal(err)
		}
		var n struct {
			Params struct {
				Result struct{ Value struct{ Lamports uint64 } }
			}
		}
		if err := json.Unmarshal([]byte(got), &n); err != nil {
			t.Fatal(err)
		}
		return n.Params.Result.Value.Lamports
	}

	l := faulty.dial()
	l.ask("accountSubscribe", to, `"result":0`)
	faults(fault.Rule{Method: "accountSubscribe", Socket: fault.SocketSilent})
	pay()
	eventually(t, "a notification is lost", func() bool { return f.Endpoint("faulty").Stats().Faults["socketSilent"] == 1 })
	faults()
	pay()
	if got := receiveLamports(l); got != 2_000_000 {
		t.Errorf("the first notification has %d lamports, want 2000000, after the lost notification", got)
	}
	faults(fault.Rule{Method: "accountSubscribe", Lag: 5})
	l = faulty.dial()
	l.ask("accountSubscribe", to, `"result":1`)
	pay()
	f.Advance(6)
	for receiveLamports(l) != 3_000_000 { // a notification of the previous payment may come first
	}

	faults(fault.Rule{Method: "accountSubscribe", Status: 429})
	l = faulty.dial()
	l.ask("accountSubscribe", to, `"error":{"code":429,"message":"Too Many Requests"}`)
	faults(fault.Rule{Method: "accountSubscribe", Hang: true})
	l.write(`{"jsonrpc":"2.0","id":1,"method":"accountSubscribe"}`)
	l.ask("getSlot", `[]`, `"error":{"code":-32601,"message":"Method not found"}`)
	faults(fault.Rule{Method: "accountSubscribe", Cut: true})
	l.write(`{"jsonrpc":"2.0","id":1,"method":"accountSubscribe"}`)
	l.expectEnd()

	faults()
	first, second := faulty.dial(), faulty.dial()
	for _, l := range []*socketClient{first, second} {
		l.ask("getSlot", `[]`, `"error":{"code":-32601,"message":"Method not found"}`)
	}
	faults(fault.Rule{Socket: fault.SocketCut})
	f.Advance(1)
	first.expectEnd()
	second.expectEnd()
	eventually(t, "all sockets are gone", func() bool { return f.Endpoint("faulty").Stats().Sockets == 0 })
}

func TestOpeningASocketFailsAsTheRuleSays(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	tests := map[string]struct {
		rule fault.Rule
		want int
	}{
		"too many requests":                   {fault.Rule{Method: fault.MethodSocket, Status: 429}, 429},
		"a JSON-RPC error becomes status 503": {fault.Rule{Error: fault.Error{Code: 1}}, 503},
		"a cut":                               {fault.Rule{Cut: true}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			conn, response, err := websocket.Dial(context.Background(), f.withFaults(test.rule).url, nil)
			if err == nil {
				_ = conn.CloseNow()
				t.Fatal("the socket opened, want a failure")
			}
			if test.want == 0 {
				if !errors.Is(err, io.EOF) {
					t.Errorf("got %v, want io.EOF", err)
				}
				return
			}
			defer func() { _ = response.Body.Close() }()
			if response.StatusCode != test.want {
				t.Errorf("status is %d, want %d", response.StatusCode, test.want)
			}
		})
	}
}

func TestSocketsEndWithTheChain(t *testing.T) {
	t.Parallel()
	vk, err := secrets.VerifyingKey()
	if err != nil {
		t.Fatal(err)
	}
	chain, err := localnet.New(localnet.Options{VerifyingKey: vk})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(chain.ServeHTTP))
	defer server.Close()
	f := &fixture{Chain: chain, t: t, url: server.URL}
	l := f.dial()
	l.ask("accountSubscribe", `["`+address("to").String()+`"]`, `"result":0`)
	if err := chain.Close(); err != nil {
		t.Error(err)
	}
	l.expectEnd()
	f.dial().expectEnd()
}
