package arena

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/hack/localnet/router"
)

// routerFaults are the faults of the relays' router, by name: failures observed in
// overloaded or unreachable APIs, and lies of a router that wants the lamports of the user
// or of the relay. payer is a fee payer of the relays.
func routerFaults(payer solana.PublicKey) map[string]router.Settings {
	faulty := func(rules ...fault.Rule) router.Settings { return router.Settings{Faults: rules} }
	lying := func(lie router.Lie, account solana.PublicKey) router.Settings {
		return router.Settings{Lies: []router.LieRule{{Lie: lie, Account: account}}}
	}
	settings := map[string]router.Settings{
		"slow":                                 faulty(fault.Rule{Latency: 200 * time.Millisecond, Jitter: 4 * time.Second}),
		"down":                                 faulty(fault.Rule{Cut: true}),
		"hangs":                                faulty(fault.Rule{Probability: 0.7, Hang: true}),
		"5xx":                                  faulty(fault.Rule{Probability: 0.7, Status: http.StatusServiceUnavailable}),
		"429":                                  faulty(fault.Rule{Probability: 0.8, Status: http.StatusTooManyRequests, RetryAfter: 2 * time.Second}),
		"long route":                           {Wide: 60},
		"long route, outside the lookup table": {Wide: 30, Outside: true},
	}
	for _, lie := range []router.Lie{
		router.WrongMint, router.WrongAmount, router.LowThreshold, router.WrongProgram, router.ExtraSigner, router.OtherUser,
		router.ShortOutput, router.PartialFill, router.BogusTable, router.ForeignTable, router.Garbage, router.Truncated, router.Huge,
	} {
		settings[string(lie)] = lying(lie, solana.PublicKey{})
	}
	for _, lie := range []router.Lie{router.PayerAccount, router.PayerWritable} {
		settings[string(lie)] = lying(lie, payer)
	}
	return settings
}

func routerFaultNames() []string { return slices.Sorted(maps.Keys(routerFaults(solana.PublicKey{1}))) }

// setRouter turns a fault of the router on or off. Faults that are on together add up.
func (n *network) setRouter(name string, on bool) error {
	n.marketMu.Lock()
	defer n.marketMu.Unlock()
	n.routerActive[name] = on
	var all router.Settings
	known := routerFaults(n.victim)
	for _, name := range slices.Sorted(maps.Keys(n.routerActive)) {
		if !n.routerActive[name] {
			continue
		}
		s := known[name]
		all.Wide, all.Outside = max(all.Wide, s.Wide), all.Outside || s.Outside
		all.Faults, all.Lies = append(all.Faults, s.Faults...), append(all.Lies, s.Lies...)
	}
	return n.chain.Router().Set(all)
}

func (n *network) routerCounts() map[string]uint64 {
	stats, out := n.chain.Router().Stats(), make(map[string]uint64)
	maps.Copy(out, stats.Faults)
	for lie, count := range stats.Lies {
		out[string(lie)] += count
	}
	return out
}
