package arena

import (
	"time"

	"github.com/relaypool/relaypool/hack/drill/schedule"
	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/market"
	"github.com/relaypool/relaypool/hack/localnet/router"
)

// baseReserves returns the market's reserves at the price that wallets expect.
func baseReserves() market.Reserves {
	return market.Reserves{Lamports: localnet.DefaultReserveLamports, Tokens: localnet.DefaultReserveTokens}
}

// basePrice returns the output for an amount of lamports at the price that wallets expect.
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

// swapLamports is about what a swap costs its payer in addition to the Transact instruction.
const swapLamports = 2_100_000

// swapGrace returns the number of slots after its timeout within which a swap must be
// closed. An execution that is signed in the last slot and then lost expires once the end
// of its blockhash's life is final. The refund after it may be lost in the same way. The
// drill breaks relays meanwhile, and their recovery takes seconds, not a number of slots.
// While the consensus migrates, slots pass in which nothing lands.
func (a *arena) swapGrace(events []schedule.Event) uint64 {
	const blockhashLife, recovery = 150, 40 * time.Second
	slot := a.o.Slot
	for _, e := range events {
		if e.Kind == schedule.ChangeSlotTime {
			slot = min(slot, percentOf(a.o.Slot, e.Amount))
		}
	}
	return 2*(blockhashLife+a.o.FinalizeAfter) + uint64(recovery/slot) + a.migrationSlots(events) //nolint:gosec // both above zero
}
