package chain

import (
	"context"

	"github.com/relaypool/relaypool/relay/internal/outbound"
)

// RoleLane is the role of a lane: it accepts transactions that pay it a tip, and nothing else is
// ever asked of it. An endpoint with this role has no other one.
const RoleLane Role = "lane"

// SendLane sends signed bytes to the lane with that name, without waiting for the answer: no
// lane's answer proves anything. It sends nothing if no lane has the name, or if the lane keeps
// failing. first is as for Send.
func (e *Endpoints) SendLane(ctx context.Context, name string, raw []byte, first bool) {
	for _, lane := range e.lanes {
		if lane.name != name {
			continue
		}
		permit, ok := lane.breaker.Try()
		if !ok {
			return
		}
		uncancelled := context.WithoutCancel(ctx)
		e.sends.run(func() {
			start := e.now()
			err := e.callSend(uncancelled, lane, raw, false, first, 0)
			e.recordResult(lane, permit, methodSend, e.now().Sub(start), 0, err)
		})
		return
	}
}

// callSend makes the call, with the priority of a first send or of a rebroadcast.
func (e *Endpoints) callSend(ctx context.Context, ep *endpoint, raw []byte, preflight, first bool, minContextSlot uint64) error {
	urgency := outbound.Rebroadcast
	if first {
		urgency = outbound.FirstSend
	}
	return ep.withEndpoint(ep.clients[urgency].Send(ctx, raw, preflight, minContextSlot))
}
