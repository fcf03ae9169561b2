package arena

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/hack/localnet/market"
	"github.com/relaypool/relaypool/hack/localnet/router"
)

// baseReserves returns the market's reserves at the price that wallets expect.
func baseReserves() market.Reserves {
	return market.Reserves{Lamports: localnet.DefaultReserveLamports, Tokens: localnet.DefaultReserveTokens}
}

// basePrice returns the output for an amount of lamports at that price.
func basePrice(lamports uint64) uint64 {
	state := market.State{Reserves: baseReserves(), FeeBPS: localnet.DefaultMarketFeeBPS}
	return state.Output(lamports)
}

// setPrice sets the market's price, in percent of the base price, and restores the
// reserves that swaps changed. keepPrice repeats it after a fork.
func (n *network) setPrice(percent int) error {
	n.marketMu.Lock()
	defer n.marketMu.Unlock()
	n.price = percent
	return n.applyPrice()
}

// keepPrice sets the price again, because a fork may have undone it.
func (n *network) keepPrice() error {
	n.marketMu.Lock()
	defer n.marketMu.Unlock()
	if n.price == 0 {
		return nil // it never changed
	}
	return n.applyPrice()
}

func (n *network) applyPrice() error {
	reserves := baseReserves()
	reserves.Tokens = reserves.Tokens / 100 * uint64(n.price) //nolint:gosec // a percentage
	return n.chain.SetReserves(reserves)
}

// routerFaults are the faults of the relays' router, by name: failures observed in
// overloaded or unreachable APIs, and lies of a router that wants the lamports of the user
// or of the relay. payer is a fee payer of the relays.
func routerFaults(payer solana.PublicKey) map[string]router.Settings {
	faulty := func(rules ...fault.Rule) router.Settings { return router.Settings{Faults: rules} }
	lying := func(lie router.Lie, account solana.PublicKey) router.Settings {
		return router.Settings{Lies: []router.LieRule{{Lie: lie, Account: account}}}
	}
	settings := map[string]router.Settings{
		"slow":          faulty(fault.Rule{Latency: 200 * time.Millisecond, Jitter: 4 * time.Second}),
		"down":          faulty(fault.Rule{Cut: true}),
		"hangs":         faulty(fault.Rule{Probability: 0.7, Hang: true}),
		"5xx":           faulty(fault.Rule{Probability: 0.7, Status: http.StatusServiceUnavailable}),
		"429":           faulty(fault.Rule{Probability: 0.8, Status: http.StatusTooManyRequests, RetryAfter: 2 * time.Second}),
		"wide":          {Wide: 60},
		"wide, outside": {Wide: 30, Outside: true},
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

// clearMarket makes the router honest and restores the price.
func (n *network) clearMarket() error {
	n.marketMu.Lock()
	clear(n.routerActive)
	err := n.chain.Router().Set(router.Settings{})
	n.marketMu.Unlock()
	if err != nil {
		return err
	}
	return n.setPrice(100)
}

func (n *network) routerCounts() map[string]uint64 {
	stats, out := n.chain.Router().Stats(), make(map[string]uint64)
	maps.Copy(out, stats.Faults)
	for lie, count := range stats.Lies {
		out[string(lie)] += count
	}
	return out
}

// swapLamports is about what a swap costs its payer in addition to the Transact instruction.
const swapLamports = 2_100_000

// swapGrace returns the number of slots after its timeout within which a swap must be
// closed. An execution that is signed in the last slot and then lost expires once the end
// of its blockhash's life is final. The refund after it may be lost in the same way. The
// drill breaks relays meanwhile, and their recovery takes seconds, not a number of slots.
func (a *arena) swapGrace() uint64 {
	const blockhashLife, recovery = 150, 40 * time.Second
	return 2*(blockhashLife+a.o.FinalizeAfter) + uint64(recovery/a.o.Slot) //nolint:gosec // both above zero
}

func vaultAddress() (solana.PublicKey, error) {
	at, err := market.For(localnet.OutputMint())
	if err != nil {
		return solana.PublicKey{}, err
	}
	return at.VaultSOL, nil
}
