package chain

import (
	"context"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/onchain"
)

// Simulate runs a transaction on the newest confirmed state, not before minContextSlot,
// without sending it; see rpc.Client.Simulate. A transaction that fails is run at a second
// endpoint too. It succeeds if it succeeds there, because sending in vain costs at most a
// fee; it fails only when both report the failure. The slot of the result is minContextSlot
// when only a single endpoint claims a later one.
func (e *Endpoints) Simulate(ctx context.Context, raw []byte, replaceBlockhash bool, minContextSlot uint64) (onchain.Simulation, error) {
	simulate := func(least uint64) query[onchain.Simulation] {
		return query[onchain.Simulation]{
			method: "simulateTransaction", urgency: outbound.Read, roles: []Role{RoleRead},
			do: func(ctx context.Context, at askedEndpoint) (onchain.Simulation, error) {
				return at.Simulate(ctx, raw, replaceBlockhash, least)
			},
		}
	}
	q := simulate(minContextSlot)
	q.slot = func(s onchain.Simulation) uint64 { return s.Slot }
	out, by, err := askWithIndex(ctx, e, q)
	at := out.Slot
	if err == nil && !e.Corroborated(at) { // no honest node could answer the next call at that slot
		out.Slot = minContextSlot
	}
	if err != nil || out.Err == nil || !e.hasOther(by) {
		return out, err
	}
	// A second endpoint that is a little behind may decide; one that is far behind may not.
	failed := []onchain.Simulation{out}
	out.Unverified = true
	least := min(at, e.slots.Best(e.now()))
	askOthers(ctx, e, simulate(max(minContextSlot, least-min(least, e.maxLag))), by, func(ep *endpoint, second onchain.Simulation) bool {
		if second.Err == nil {
			e.recordDispute(e.all[by], ep)
			second.Slot = min(second.Slot, out.Slot) // its slot may be a lie
			out = second
			return true
		}
		for _, first := range failed {
			if sameError(first.Err, second.Err) {
				out = first
				return true
			}
		}
		failed = append(failed, second)
		return false
	})
	return out, nil
}
