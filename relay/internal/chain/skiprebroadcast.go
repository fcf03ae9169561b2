package chain

import (
	"context"
	"time"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/onchain"
)

// maxBudgetWait is how long a call may wait for an endpoint's request budget. A rebroadcast does
// not wait, because the next one follows soon: an endpoint with an exhausted budget gets none.
func (e *Endpoints) maxBudgetWait(u outbound.Urgency) time.Duration {
	if u == outbound.Rebroadcast {
		return 0
	}
	return e.timeout
}

// callSend makes the call, with the priority of a first send or of a rebroadcast.
func (e *Endpoints) callSend(ctx context.Context, ep *endpoint, raw []byte, preflight, first bool, minContextSlot uint64) error {
	urgency := outbound.Rebroadcast
	if first {
		urgency = outbound.FirstSend
	}
	err := ep.withEndpoint(ep.clients[urgency].Send(ctx, raw, preflight, minContextSlot))
	if !first && onchain.KindOf(err) == onchain.KindBudget {
		e.observer.RebroadcastSkipped(ep.name)
	}
	return err
}
