package chain

import (
	"context"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/onchain"
)

// defaultProbe is the default of EndpointsOptions.Probe.
const defaultProbe = 5 * time.Second

// pollInterval is the average time between two checks of an endpoint by Run.
const pollInterval = 500 * time.Millisecond

// maxProbeWhileRefusing is the longest interval between probes while answers are refused because of
// their slots. After an outage or a migration of the consensus, the chain may be far ahead of the
// last agreed slot. Answers are then refused until two endpoints agree, so the endpoints are probed
// more often.
const maxProbeWhileRefusing = time.Second

// Run probes endpoints that get no calls, until the context ends. It asks an endpoint for its slot
// if the endpoint was not called for a while, or if the endpoint's breaker waits for a probe. So
// the health of every endpoint rests on recent answers, and an endpoint that works again is used
// without waiting for a caller's request. Run also reads performance samples until the slot
// duration is measured.
func (e *Endpoints) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { e.sampleSlots(ctx) })
	for _, ep := range e.all {
		wg.Go(func() {
			for sleep(ctx, time.Duration(float64(pollInterval)*(0.5+e.rand()))) {
				e.pollEndpoint(ctx, ep)
			}
		})
	}
	wg.Wait()
}

func (e *Endpoints) pollEndpoint(ctx context.Context, ep *endpoint) {
	if ep.isForeign() {
		e.recheck(ctx, ep)
		return
	}
	_, answeredAt := e.slots.Lag(ep.index)
	interval := e.probe
	if e.now().Sub(time.Unix(0, e.slotRefusedAt.Load())) < e.probe {
		interval = min(interval, maxProbeWhileRefusing)
	}
	if ep.breaker.State() == outbound.Closed && (e.now().Sub(answeredAt) < interval || ep.identity().unreported) {
		return
	}
	permit, ok := ep.breaker.Try()
	if !ok {
		return
	}
	// attempt records the outcome; no caller waits for the answer.
	_, _ = attempt(ctx, e, ep, permit, query[uint64]{
		method: "getSlot", urgency: outbound.Background,
		do: func(ctx context.Context, source askedEndpoint) (uint64, error) {
			return source.Slot(ctx, onchain.Confirmed)
		},
		slot: func(slot uint64) uint64 { return slot },
	}, 1)
}
