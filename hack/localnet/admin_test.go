package localnet_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/hack/localnet"
)

// admin makes a request to the admin port at url.
func (f *fixture) admin(url, method, path, body string) (status int, answer string) {
	f.t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), method, url+path, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return response.StatusCode, strings.TrimSpace(string(raw))
}

func newAdmin(t *testing.T) (f *fixture, url string) {
	t.Helper()
	f = newFixture(t, localnet.Options{})
	url, err := f.ListenAdmin("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return f, url
}

func TestAdminPortSetsFaults(t *testing.T) {
	t.Parallel()
	f, url := newAdmin(t)
	slow, err := f.ListenEndpoint("slow", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	want := func(method, path, body string, want string) {
		t.Helper()
		if status, got := f.admin(url, method, path, body); status != http.StatusOK || got != want {
			t.Errorf("%s %s: status %d with %s, want %s", method, path, status, got, want)
		}
	}
	want("PUT", "/endpoints/slow/faults", `[{"latency":"1ms"},{"status":503}]`, `[{"latency":"1ms"},{"status":503}]`)
	want("GET", "/endpoints/slow/faults", "", `[{"latency":"1ms"},{"status":503}]`)
	if _, err := rpc.New(slow).GetHealth(t.Context()); err == nil {
		t.Error("getHealth succeeds, want the faults to apply")
	}
	want("PUT", "/endpoints/slow/faults", `[]`, `[]`)
	if _, err := rpc.New(slow).GetHealth(t.Context()); err != nil {
		t.Errorf("getHealth returns %v after the faults have ended, want success", err)
	}
}

func TestAdminPortAdvancesAndForksTheChain(t *testing.T) {
	t.Parallel()
	f, url := newAdmin(t)
	to := address("to").String()
	status, raw := f.admin(url, "POST", "/airdrop", `{"to":"`+to+`","lamports":2000000}`)
	var airdrop struct{ Signature string }
	if err := json.Unmarshal([]byte(raw), &airdrop); err != nil || status != http.StatusOK {
		t.Fatalf("status %d with %s: %v", status, raw, err)
	}
	steps := []struct{ path, body, want string }{
		{"/advance", `{"slots":2}`, `{"blockHeight":35,"slot":35,"waiting":0}`},
		{"/fork", `{"blocks":3,"transactions":"replayed"}`, `{"blockHeight":35,"slot":38,"undone":[{"again":true,"signature":"` + airdrop.Signature + `","slot":33}],"waiting":0}`},
		{"/skip", `{"slots":4}`, `{"blockHeight":36,"slot":43,"waiting":0}`},
		{"/fork", `{"blocks":2,"transactions":"lost"}`, `{"blockHeight":36,"slot":45,"undone":[{"again":false,"signature":"` + airdrop.Signature + `","slot":38}],"waiting":0}`},
	}
	for i, step := range steps {
		if status, got := f.admin(url, "POST", step.path, step.body); status != http.StatusOK || got != step.want {
			t.Fatalf("step %d, %s: status %d with %s, want %s", i, step.path, status, got, step.want)
		}
		wantBalance := map[int]string{0: "2000000", 1: "2000000", 2: "2000000", 3: "0"}[i]
		if out := f.call("getBalance", `["`+to+`",{"commitment":"processed"}]`); !strings.Contains(string(out.Result), `"value":`+wantBalance) {
			t.Errorf("after step %d the balance is %s, want %s", i, out.Result, wantBalance)
		}
	}
}

func TestAdminPortRefusals(t *testing.T) {
	t.Parallel()
	f, url := newAdmin(t)
	tests := map[string]struct {
		method, path, body string
		wantStatus         int
		want               string
	}{
		"an unknown route":                 {"GET", "/moon", "", 404, "no route GET /moon"},
		"a wrong method":                   {"PUT", "/fork", "", 404, "no route PUT /fork"},
		"an unknown endpoint":              {"GET", "/endpoints/moon/faults", "", 404, `endpoint \"moon\" does not exist, expected one of default`},
		"a fault with status 1":            {"PUT", "/endpoints/default/faults", `[{"status":1}]`, 400, "fault rule 0: status is 1"},
		"faults of an unknown method":      {"PUT", "/endpoints/default/faults", `[{"method":"getMoon","cut":true}]`, 400, `method is \"getMoon\"`},
		"a duration that is not a string":  {"PUT", "/endpoints/default/faults", `[{"latency":1}]`, 400, "fault rule 0: latency: got a number"},
		"no body":                          {"POST", "/fork", "", 400, "EOF"},
		"an unknown field":                 {"POST", "/fork", `{"depth":1}`, 400, `unknown field \"depth\"`},
		"a field of another type":          {"POST", "/fork", `{"blocks":"1"}`, 400, "blocks: got a string, expected uint64"},
		"more than one value":              {"POST", "/skip", `{"slots":1}{}`, 400, "expected one JSON value"},
		"a fork without transactions":      {"POST", "/fork", `{"blocks":1}`, 400, `transactions is \"\", expected \"lost\" or \"replayed\"`},
		"a fork of finalized blocks":       {"POST", "/fork", `{"blocks":33,"transactions":"lost"}`, 400, "cannot undo 33 blocks: want 1 to 32"},
		"an airdrop to an invalid address": {"POST", "/airdrop", `{"to":"x","lamports":1}`, 400, `invalid public key \"x\"`},
		"an airdrop below rent":            {"POST", "/airdrop", `{"to":"` + address("nobody").String() + `","lamports":1}`, 400, "airdrop 1 lamports"},
		"no slots":                         {"POST", "/advance", `{}`, 400, "slots is 0, expected 1 to 100000"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, got := f.admin(url, test.method, test.path, test.body)
			if status != test.wantStatus || !strings.HasPrefix(got, `{"error":"`) || !strings.Contains(got, test.want) {
				t.Errorf("status %d with %s, want %d with %s", status, got, test.wantStatus, test.want)
			}
		})
	}
	for _, addr := range []string{"0.0.0.0:0", ":0", "nowhere"} {
		if _, err := f.ListenAdmin(addr); err == nil {
			t.Errorf("the admin port listens on %s, want an error", addr)
		}
	}
	if _, err := f.ListenEndpoint("", "127.0.0.1:0"); err == nil {
		t.Error("an endpoint without a name listens, want an error")
	}
}
