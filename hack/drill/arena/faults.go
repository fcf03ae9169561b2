package arena

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/hack/sandbox"
)

// network is the local chain behind RPC endpoints that misbehave on demand.
type network struct {
	chain *localnet.Chain
	// endpoints are the endpoints that the relays use.
	endpoints []sandbox.Endpoint
	// victim is the fee payer that a hostile router attacks.
	victim solana.PublicKey

	mu     sync.Mutex
	rand   *rand.Rand
	active []map[string]bool
	// lies are the endpoints' false claims in addition to their faults; "" for an honest endpoint.
	lies []string

	// marketMu serialises changes of market and router.
	marketMu sync.Mutex
	// price is the market's price in percent of the base price; 0 before it is first set.
	price        int
	routerActive map[string]bool
}

// faultRules are the faults that an endpoint can have, by name. Each occurs at real
// providers without intent; lieRules has the intentional ones.
func faultRules() map[string][]fault.Rule {
	const send, statuses = "sendTransaction", "getSignatureStatuses"
	return map[string][]fault.Rule{
		"slow":              {{Latency: 100 * time.Millisecond, Jitter: 2 * time.Second}},
		"5xx":               {{Probability: 0.7, Status: http.StatusBadGateway}},
		"429":               {{Probability: 0.7, Status: http.StatusTooManyRequests, RetryAfter: time.Second}},
		"cuts":              {{Probability: 0.6, Cut: true}},
		"hangs":             {{Probability: 0.4, Hang: true}},
		"dead":              {{Cut: true}},
		"acts, then fails":  {{Method: send, Probability: 0.5, AfterActing: true, Status: http.StatusBadGateway}, {Method: send, Probability: 0.8, AfterActing: true, Cut: true}},
		"acts, then hangs":  {{Method: send, Probability: 0.7, AfterActing: true, Hang: true}},
		"drops sends":       {{Method: send, Probability: 0.7, Drop: true}},
		"refuses sends":     {{Method: send, Probability: 0.7, Error: fault.Error{Code: -32005, Message: "Node is behind by 42 slots"}}},
		"lags 12":           {{Lag: 12}},
		"lags 140":          {{Lag: 140}, {Method: "getHealth", Health: fault.HealthOK}},
		"frozen blockhash":  {{FrozenBlockhash: true}},
		"lies of health":    {{Method: "getHealth", Health: fault.HealthBehind}},
		"balance 0":         {{Method: "getBalance", Probability: 0.7, Empty: true}},
		"null status":       {{Method: statuses, Probability: 0.7, Empty: true}},
		"short history":     {{History: 16}},
		"WebSocket cuts":    {{Socket: fault.SocketCut, Probability: 0.5}},
		"WebSocket silence": {{Socket: fault.SocketSilent}},
	}
}

// hardFaults make an endpoint nearly useless.
func hardFaults() []string {
	return []string{"5xx", "429", "cuts", "hangs", "dead", "acts, then hangs", "drops sends", "refuses sends", "lags 140"}
}

func faultNames() []string { return slices.Sorted(maps.Keys(faultRules())) }

// newNetwork gives the chain its endpoints, each with its own address.
func newNetwork(chain *localnet.Chain, endpoints int, victim solana.PublicKey, seed uint64) (*network, error) {
	n := &network{chain: chain, victim: victim, routerActive: make(map[string]bool), rand: rand.New(rand.NewPCG(seed, 0x666f726b))} //nolint:gosec // a schedule that repeats needs no secure randomness
	for i := range endpoints {
		name := fmt.Sprintf("endpoint-%d", i+1)
		url, err := chain.ListenEndpoint(name, "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		n.endpoints = append(n.endpoints, sandbox.Endpoint{Name: name, URL: url})
		n.active, n.lies = append(n.active, make(map[string]bool)), append(n.lies, "")
	}
	return n, nil
}

func (n *network) set(endpoint int, name string, on bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.active[endpoint][name] = on
	return n.apply(endpoint)
}

func (n *network) apply(endpoint int) error {
	rules := slices.Clone(lieRules()[n.lies[endpoint]])
	for _, name := range slices.Sorted(maps.Keys(n.active[endpoint])) {
		if n.active[endpoint][name] {
			rules = append(rules, faultRules()[name]...)
		}
	}
	return n.chain.SetFaults(map[string][]fault.Rule{n.endpoints[endpoint].Name: rules})
}

// clear turns every fault off. A lie stays.
func (n *network) clear() error {
	if err := n.clearMarket(); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.active {
		clear(n.active[i])
		if err := n.apply(i); err != nil {
			return err
		}
	}
	return nil
}
