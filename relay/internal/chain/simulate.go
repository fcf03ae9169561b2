package chain

import (
	"context"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/onchain"
)

// Simulate runs a transaction on the newest confirmed state without sending it; see
// rpc.Client.Simulate. The state is not older than minContextSlot. If the transaction fails, a
// second endpoint runs it too. If it succeeds there, Simulate returns the success, because a send
// in vain costs at most a fee. A failure that no second endpoint reports is marked as unverified.
// If only a single endpoint claims a slot after minContextSlot, the slot of the result is
// minContextSlot.
func (e *Endpoints) Simulate(ctx context.Context, raw []byte, replaceBlockhash bool, minContextSlot uint64) (onchain.Simulation, error) {
	simulate := func(minSlot uint64) query[onchain.Simulation] {
		return query[onchain.Simulation]{
			method: "simulateTransaction", urgency: outbound.Read, roles: []Role{RoleRead},
			do: func(ctx context.Context, source askedEndpoint) (onchain.Simulation, error) {
				s, err := source.Simulate(ctx, raw, replaceBlockhash, minSlot)
				s.Endpoint = e.all[source.index].name
				return s, err
			},
		}
	}
	q := simulate(minContextSlot)
	q.slot = func(s onchain.Simulation) uint64 { return s.Slot }
	out, origin, err := askWithIndex(ctx, e, q)
	slot := out.Slot
	if err == nil && !e.Corroborated(slot) {
		// The endpoint may have invented the slot. No honest node would answer a call with that
		// slot as minContextSlot.
		out.Slot = minContextSlot
	}
	if err != nil || out.Err == nil || !e.hasOther(origin) {
		return out, err
	}
	// A second endpoint's answer counts if that endpoint is at most maxLag slots behind.
	failed := []onchain.Simulation{out}
	out.Unverified = true
	chainSlot := min(slot, e.slots.Best(e.now()))
	askOthers(ctx, e, simulate(max(minContextSlot, chainSlot-min(chainSlot, e.maxLag))), origin, func(ep *endpoint, second onchain.Simulation) bool {
		if second.Err == nil {
			e.recordDispute(e.all[origin], ep)
			second.Slot = min(second.Slot, out.Slot) // its slot may be wrong
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
