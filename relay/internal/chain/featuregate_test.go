package chain_test

import (
	"log/slog"
	"math/rand/v2"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/relay/internal/chain"
)

// TestFeatureGateOnALocalChain reads the gate of version 1 as different chains have it.
func TestFeatureGateOnALocalChain(t *testing.T) {
	t.Parallel()
	other, short := localnet.FeatureAccount(true), localnet.FeatureAccount(true)
	other.Owner, short.Data = solana.SystemProgramID, short.Data[:8]
	for name, test := range map[string]struct {
		gate *bank.Account
		want bool
	}{
		"active":                        {nil, true},
		"pending":                       {new(localnet.FeatureAccount(false)), false},
		"owned by another program":      {&other, false},
		"shorter than a feature's data": {&short, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := localnet.Options{}
			if test.gate != nil {
				o.Accounts = map[solana.PublicKey]bank.Account{localnet.TransactionV1Gate(): *test.gate}
			}
			w := newWorld(t, o)
			g := chain.NewFeatureGate(chain.TransactionV1Gate, w.client, slog.New(slog.DiscardHandler))
			if g.Active() {
				t.Error("a gate that was never read is active")
			}
			if err := g.Read(t.Context()); err != nil {
				t.Fatal(err)
			}
			if g.Active() != test.want {
				t.Errorf("the feature is active: %v, want %v", g.Active(), test.want)
			}
		})
	}
}

// TestAFeatureNeedsTwoEndpoints has one endpoint that does not know the gate's account.
func TestAFeatureNeedsTwoEndpoints(t *testing.T) {
	t.Parallel()
	w := newWorld(t, localnet.Options{})
	var endpoints []chain.Endpoint
	for _, name := range []string{"one", "two"} {
		server := httptest.NewServer(w.Endpoint(name))
		t.Cleanup(server.Close)
		endpoints = append(endpoints, chain.Endpoint{Name: name, URL: server.URL})
	}
	both, err := chain.NewEndpoints(chain.EndpointsOptions{
		Endpoints: endpoints, Genesis: localnet.GenesisHash, Now: time.Now, Rand: rand.Float64, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(both.Close)
	fails := func(rules ...fault.Rule) {
		if err := w.Endpoint("two").SetFaults(rules); err != nil {
			t.Fatal(err)
		}
	}
	g := chain.NewFeatureGate(chain.TransactionV1Gate, both, slog.New(slog.DiscardHandler))
	fails(fault.Rule{Method: "getMultipleAccounts", Empty: true})
	if err := g.Read(t.Context()); err == nil || g.Active() {
		t.Errorf("one endpoint of two activates the feature (%v)", err)
	}
	fails()
	for range 20 { // the second endpoint's breaker may have to close first
		if err := g.Read(t.Context()); err == nil {
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	if !g.Active() {
		t.Error("two endpoints do not activate the feature")
	}
}
