package localnet_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/fault"
)

// line is a client's WebSocket connection.
type line struct {
	*websocket.Conn
	t testing.TB
}

// dial opens a WebSocket to the fixture's endpoint.
func (f *fixture) dial() *line {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	conn, response, err := websocket.Dial(ctx, f.url, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	if response.Body != nil {
		_ = response.Body.Close()
	}
	f.t.Cleanup(func() { _ = conn.CloseNow() })
	return &line{conn, f.t}
}

func (l *line) write(text string) {
	l.t.Helper()
	if err := l.Write(context.Background(), websocket.MessageText, []byte(text)); err != nil {
		l.t.Fatal(err)
	}
}

// receive waits for the next message.
func (l *line) receive() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	_, raw, err := l.Read(ctx)
	return string(raw), err
}

// wants waits for the next message and wants it to be that.
func (l *line) wants(want string) {
	l.t.Helper()
	got, err := l.receive()
	if err != nil {
		l.t.Fatalf("got error %v, want %s", err, want)
	}
	if diff := cmp.Diff(generic(l.t, []byte(want)), generic(l.t, []byte(got))); diff != "" {
		l.t.Errorf("message (-want +got):\n%s", diff)
	}
}

// ask makes a call and wants that answer.
func (l *line) ask(method, params, want string) {
	l.t.Helper()
	l.write(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`)
	l.wants(`{"jsonrpc":"2.0","id":1,` + want + `}`)
}

// wantsEnd wants the connection to be over without another message.
func (l *line) wantsEnd() {
	l.t.Helper()
	if got, err := l.receive(); err == nil || errors.Is(err, context.DeadlineExceeded) {
		l.t.Errorf("got %q with error %v, want a connection that is over", got, err)
	}
}

func notified(method, result, id string) string {
	return `{"jsonrpc":"2.0","method":"` + method + `","params":{"result":` + result + `,"subscription":` + id + `}}`
}

func TestSlotsAreTold(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	l := f.dial()
	l.ask("slotSubscribe", `[]`, `"result":0`)
	f.Advance(1)
	l.wants(notified("slotNotification", `{"slot":34,"parent":33,"root":2}`, "0"))
	f.Skip(3)
	l.wants(notified("slotNotification", `{"slot":38,"parent":34,"root":3}`, "0"))
	// A fork puts two blocks of the new branch on top of slot 33.
	if _, err := f.Fork(2, nil); err != nil {
		t.Fatal(err)
	}
	l.wants(notified("slotNotification", `{"slot":39,"parent":33,"root":3}`, "0"))
	l.wants(notified("slotNotification", `{"slot":40,"parent":39,"root":3}`, "0"))
	l.ask("slotUnsubscribe", `[0]`, `"result":true`)
	f.Advance(1)
	l.ask("slotSubscribe", `[]`, `"result":1`)
	f.Advance(1)
	l.wants(notified("slotNotification", `{"slot":42,"parent":41,"root":5}`, "1"))
}

func TestSignaturesAreToldOnceAtTheirLevel(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	l := f.dial()
	good := f.sign(f.blockhash(rpc.CommitmentProcessed), f.transfer(1_000_000))
	bad := f.sign(f.blockhash(rpc.CommitmentProcessed), f.transfer(1<<62))
	sub := func(signature, level string) string { return `["` + signature + `",{"commitment":"` + level + `"}]` }
	l.ask("signatureSubscribe", sub(good.Signatures[0].String(), "confirmed"), `"result":0`)
	l.ask("signatureSubscribe", `["`+good.Signatures[0].String()+`"]`, `"result":1`)
	l.ask("signatureSubscribe", sub(bad.Signatures[0].String(), "processed"), `"result":2`)
	f.send(good)
	if _, err := f.SendTransactionWithOpts(context.Background(), bad, rpc.TransactionOpts{SkipPreflight: true}); err != nil {
		t.Fatal(err)
	}
	f.Advance(1)
	l.wants(notified("signatureNotification", `{"context":{"slot":34},"value":{"err":{"InstructionError":[0,{"Custom":1}]}}}`, "2"))
	f.Advance(1)
	l.wants(notified("signatureNotification", `{"context":{"slot":33},"value":{"err":null}}`, "0"))
	// It has ended itself.
	l.ask("signatureUnsubscribe", `[0]`, `"error":{"code":-32602,"message":"Invalid subscription id."}`)
	f.Advance(30)
	l.wants(notified("signatureNotification", `{"context":{"slot":33},"value":{"err":null}}`, "1"))
	// One that is confirmed already is told of at the next slot, or with the last
	// when the chain was just about to tell of that.
	l.ask("signatureSubscribe", sub(good.Signatures[0].String(), "confirmed"), `"result":3`)
	f.Advance(1)
	got, err := l.receive()
	if err != nil {
		t.Fatal(err)
	}
	wants := []string{
		notified("signatureNotification", `{"context":{"slot":63},"value":{"err":null}}`, "3"),
		notified("signatureNotification", `{"context":{"slot":64},"value":{"err":null}}`, "3"),
	}
	if !slices.ContainsFunc(wants, func(want string) bool { return cmp.Equal(generic(t, []byte(want)), generic(t, []byte(got))) }) {
		t.Errorf("message %s, want one of %v", got, wants)
	}
}

func TestAccountsAreToldWhenTheyChange(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	l := f.dial()
	to := address("to").String()
	l.ask("accountSubscribe", `["`+to+`",{"commitment":"confirmed","encoding":"base64"}]`, `"result":0`)
	f.send(f.sign(f.blockhash(rpc.CommitmentProcessed), f.transfer(1_000_000)))
	f.Advance(2)
	holding := func(slot, lamports string) string {
		return notified("accountNotification", `{"context":{"slot":`+slot+`},"value":{"data":["","base64"],"executable":false,"lamports":`+
			lamports+`,"owner":"11111111111111111111111111111111","rentEpoch":18446744073709551615,"space":0}}`, "0")
	}
	l.wants(holding("33", "1000000"))
	// A fork that undoes it tells of the account as it was: there was none.
	if _, err := f.Fork(3, nil); err != nil {
		t.Fatal(err)
	}
	l.wants(holding("36", "0"))
	f.Advance(40)
	l.ask("accountUnsubscribe", `[0]`, `"result":true`)
}

func TestSocketsAnswerAsAgaveDoes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{Initialised: true})
	l := f.dial()
	const invalid = `"error":{"code":-32602,"message":`
	tests := map[string]struct{ method, params, want string }{
		"a signature that is none":      {"signatureSubscribe", `["x"]`, invalid + `"Invalid Request: Invalid signature provided"}`},
		"an address that is none":       {"accountSubscribe", `["x"]`, invalid + `"Invalid Request: Invalid pubkey provided"}`},
		"an unknown encoding":           {"accountSubscribe", `["` + address("to").String() + `",{"encoding":"hex"}]`, invalid + "\"Invalid params: unknown variant `hex`, expected one of `binary`, `base64`, `base58`, `jsonParsed`\"}"},
		"no parameters":                 {"signatureSubscribe", `[]`, invalid + "\"`params` should have at least 1 argument(s)\"}"},
		"parameters for slots":          {"slotSubscribe", `[1]`, invalid + `"Invalid parameters: Expected from 0 to 0 parameters. Got: 1"}`},
		"an unknown subscription":       {"accountUnsubscribe", `[77]`, invalid + `"Invalid subscription id."}`},
		"a method of HTTP":              {"getSlot", `[]`, `"error":{"code":-32601,"message":"Method not found"}`},
		"the one method that both have": {"getVersion", `[]`, `"result":{"solana-core":"2.3.0","feature-set":0}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			on := &line{l.Conn, t}
			on.ask(test.method, test.params, test.want)
		})
	}
	if out := f.call("slotSubscribe", `[]`); out.Error == nil || out.Error.Code != -32601 {
		t.Errorf("slotSubscribe over HTTP gives %+v, want method not found", out)
	}
	l.write(`[{"jsonrpc":"2.0","id":1,"method":"slotSubscribe"},{"jsonrpc":"2.0","id":2,"method":"slotUnsubscribe","params":[0]}]`)
	l.wants(`[{"jsonrpc":"2.0","id":1,"result":0},{"jsonrpc":"2.0","id":2,"result":true}]`)
	l.write(`{`)
	l.wants(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`)

	// Data that base58 is too slow for is replaced by a text.
	tree := pool(t).MerkleTree
	l.ask("accountSubscribe", `["`+tree.String()+`",{"commitment":"processed"}]`, `"result":1`)
	f.send(f.sign(f.blockhash(rpc.CommitmentProcessed), unitLimit(400_000),
		transact(t, pool(t), f.payer.PublicKey(), f.tree(pool(t), rpc.CommitmentProcessed).Root, 1, 0, solana.PublicKey{})))
	f.Advance(1)
	if got, err := l.receive(); err != nil || !strings.Contains(got, `"data":"error: data too large for bs58 encoding"`) {
		t.Errorf("got %s with error %v, want an account whose data is too large", got, err)
	}

	l.write(strings.Repeat(" ", 4097))
	l.wantsEnd()
}

func TestSocketFaults(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	faults := func(rules ...fault.Rule) {
		if err := f.Endpoint("faulty").SetFaults(rules); err != nil {
			t.Fatal(err)
		}
	}
	faulty := f.faulty()
	slot := func() string {
		out := f.call("getSlot", `[{"commitment":"processed"}]`)
		return string(out.Result)
	}
	told := func(l *line) string {
		got, err := l.receive()
		if err != nil {
			t.Fatal(err)
		}
		var n struct {
			Params struct{ Result struct{ Slot json.Number } }
		}
		if err := json.Unmarshal([]byte(got), &n); err != nil {
			t.Fatal(err)
		}
		return n.Params.Result.Slot.String()
	}

	l := faulty.dial()
	l.ask("slotSubscribe", `[]`, `"result":0`)
	faults(fault.Rule{Method: "slotSubscribe", Socket: fault.SocketSilent})
	f.Advance(1)
	eventually(t, "a notification is lost", func() bool { return f.Endpoint("faulty").Stats().Faults["socketSilent"] == 1 })
	l.ask("slotUnsubscribe", `[9]`, `"error":{"code":-32602,"message":"Invalid subscription id."}`)
	faults()
	f.Advance(1)
	if got := told(l); got != slot() {
		t.Errorf("slot %s is told first, want %s: the one before was lost", got, slot())
	}
	faults(fault.Rule{Method: "slotSubscribe", Lag: 5})
	f.Advance(6)
	if got, now := told(l), slot(); len(got) != len(now) || got >= now {
		t.Errorf("slot %s is told by a lagging node, want one below %s", got, now)
	}

	faults(fault.Rule{Method: "slotSubscribe", Status: 429})
	l = faulty.dial()
	l.ask("slotSubscribe", `[]`, `"error":{"code":429,"message":"Too Many Requests"}`)
	faults(fault.Rule{Method: "slotSubscribe", Hang: true})
	l.write(`{"jsonrpc":"2.0","id":1,"method":"slotSubscribe"}`)
	l.ask("slotUnsubscribe", `[99]`, `"error":{"code":-32602,"message":"Invalid subscription id."}`)
	faults(fault.Rule{Method: "slotSubscribe", Cut: true})
	l.write(`{"jsonrpc":"2.0","id":1,"method":"slotSubscribe"}`)
	l.wantsEnd()

	faults()
	first, second := faulty.dial(), faulty.dial()
	for _, l := range []*line{first, second} {
		l.ask("getVersion", `[]`, `"result":{"solana-core":"2.3.0","feature-set":0}`)
	}
	faults(fault.Rule{Socket: fault.SocketCut})
	f.Advance(1)
	first.wantsEnd()
	second.wantsEnd()
	eventually(t, "all sockets are gone", func() bool { return f.Endpoint("faulty").Stats().Sockets == 0 })
}

func TestOpeningASocketFailsAsTheRuleSays(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	tests := map[string]struct {
		rule fault.Rule
		want int
	}{
		"too many requests":                     {fault.Rule{Method: fault.MethodSocket, Status: 429}, 429},
		"a JSON-RPC error, which it cannot say": {fault.Rule{Error: fault.Error{Code: 1}}, 503},
		"a cut":                                 {fault.Rule{Cut: true}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			conn, response, err := websocket.Dial(context.Background(), f.faulty(test.rule).url, nil)
			if err == nil {
				_ = conn.CloseNow()
				t.Fatal("the socket is open")
			}
			if test.want == 0 {
				if !errors.Is(err, io.EOF) {
					t.Errorf("got %v, want a connection that ends", err)
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
	l.ask("slotSubscribe", `[]`, `"result":0`)
	if err := chain.Close(); err != nil {
		t.Error(err)
	}
	l.wantsEnd()
	f.dial().wantsEnd()
}
