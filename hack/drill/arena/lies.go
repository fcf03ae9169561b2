package arena

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// lieRules are the false claims of a hostile endpoint, by name. Its blocks and accounts are
// true: an endpoint with a consistent lie about everything serves another chain, which only
// the other endpoints can reveal.
func lieRules() map[string][]fault.Rule {
	const (
		blockhash, epoch  = "getLatestBlockhash", "getEpochInfo"
		statuses, sending = "getSignatureStatuses", "sendTransaction"
		simulation        = "simulateTransaction"
	)
	succeeds := func(method string) fault.Rule {
		return fault.Rule{Method: method, Outcome: fault.OutcomeSucceeds}
	}
	fails := func(method string, code uint32) fault.Rule {
		return fault.Rule{Method: method, Outcome: fault.OutcomeFails, Err: programError(code)}
	}
	return map[string][]fault.Rule{
		"slots ahead":                {{Ahead: 100}},
		"slots far ahead":            {{Ahead: 1_000_000}},
		"slots ahead at times":       {{Probability: 0.2, Ahead: 5_000}},
		"simulated slot huge":        {{Method: simulation, Ahead: 1 << 40}},
		"stale state as current":     {{Lag: 140, Ahead: 140}},
		"heights are slots":          {{SlotAsHeight: true}},
		"blockhashes never expire":   {{Method: blockhash, HeightAhead: 22_000_000}},
		"blockhashes expire at once": {{Method: epoch, Ahead: 10_000, HeightAhead: 10_000}},
		"all landed":                 {succeeds(statuses)},
		"all failed":                 {fails(statuses, shieldpool.CodeDoubleSpend)},
		"nothing landed":             {{Method: statuses, Empty: true}},
		"every simulation good":      {succeeds(simulation), succeeds(sending)},
		"every simulation bad":       {fails(simulation, shieldpool.CodeProofInvalid), fails(sending, shieldpool.CodeProofInvalid)},
		"every root stale":           {fails(simulation, shieldpool.CodeRootNotFound), fails(sending, shieldpool.CodeRootNotFound)},
		// Combinations, each with one aim.
		"fakes outcomes":  {{Ahead: 100}, succeeds(""), {Method: sending, Drop: true}},
		"fakes failures":  {{Ahead: 100}, fails("", shieldpool.CodeProofInvalid)},
		"claims expiry":   {{Ahead: 1_000}, {Method: epoch, HeightAhead: 1_000}, {Method: statuses, Empty: true}},
		"closes the pool": {{Ahead: 1}, {Method: blockhash, HeightAhead: 22_000_000}, {Method: statuses, Empty: true}, {Method: sending, Drop: true}},
	}
}

// programError returns Agave's form of the error with which the pool's instruction failed.
func programError(code uint32) string {
	text, err := json.Marshal(map[string]any{"InstructionError": []any{shieldpool.PoolInstruction, map[string]uint32{"Custom": code}}})
	if err != nil {
		panic(fmt.Sprintf("encode a transaction error: %v", err)) // it has only numbers and texts
	}
	return string(text)
}

// statusLies returns the lies that contradict an honest endpoint's signature statuses: the first
// two once a transaction has expired, the others in every call. With two endpoints the relay cannot
// know which one lies, so outcomes wait until both are honest. A lie that lasts longer than a swap's
// timeout would make the swap fail without a fault of the relay.
func statusLies() []string {
	return []string{"all landed", "blockhashes expire at once", "all failed", "nothing landed", "fakes failures", "claims expiry", "closes the pool"}
}

// lastingLies returns the lies that one endpoint may tell for the whole drill, given the number
// of endpoints.
func lastingLies(lies []string, endpoints int) []string {
	if endpoints > 2 {
		return lies
	}
	return slices.DeleteFunc(slices.Clone(lies), func(name string) bool { return slices.Contains(statusLies(), name) })
}

// LieNames are the lies that a hostile endpoint can tell.
func LieNames() []string { return slices.Sorted(maps.Keys(lieRules())) }

// lie sets an endpoint's lie; "" ends it. The method clear ends faults only.
func (n *network) lie(endpoint int, name string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lies[endpoint] = name
	return n.apply(endpoint)
}

func (n *network) lieCounts() map[string]uint64 {
	out := make(map[string]uint64)
	for _, e := range n.endpoints {
		for effect, count := range n.chain.Endpoint(e.Name).Stats().Faults {
			if slices.Contains([]string{"ahead", "heightAhead", "slotAsHeight", "outcome"}, effect) {
				out[effect] += count
			}
		}
	}
	return out
}
