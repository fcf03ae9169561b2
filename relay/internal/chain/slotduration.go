package chain

import (
	"context"
	"slices"
	"time"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/onchain"
)

// sampleInterval is how often the endpoints' performance samples are read while the chain's
// speed is not measured.
const sampleInterval = time.Minute

// shortestSample is the least slot time that is taken from samples: no network has shorter slots.
const shortestSample = 100 * time.Millisecond

// SlotDuration returns how long a slot takes. It is measured on the slots on which two endpoints
// agree, or which the only endpoint reports. Before the first measurement it is the median of the
// endpoints' performance samples. Without samples it is the network's nominal slot time.
func (e *Endpoints) SlotDuration() time.Duration {
	if took, measured := e.slots.slotDuration(); measured {
		return took
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.slotSamples) == 0 {
		return onchain.NominalSlot
	}
	return max(e.slotSamples[(len(e.slotSamples)-1)/2], shortestSample)
}

// slotDuration returns the measured time of a slot; false before it is measured.
func (f *slotAgreement) slotDuration() (took time.Duration, measured bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.measured || f.rate <= 0 {
		return 0, false
	}
	took = time.Duration(float64(time.Second) / f.rate)
	return min(max(took, onchain.ShortestSlot), onchain.LongestSlot), true
}

// sampleSlots reads the performance samples of all endpoints until the speed is measured.
func (e *Endpoints) sampleSlots(ctx context.Context) {
	for {
		if _, measured := e.slots.slotDuration(); measured {
			return
		}
		samples := askEach(ctx, e, query[time.Duration]{
			method: "getRecentPerformanceSamples", urgency: outbound.Background,
			do: func(ctx context.Context, source askedEndpoint) (time.Duration, error) {
				return source.SlotDuration(ctx)
			},
		})
		slices.Sort(samples)
		e.mu.Lock()
		e.slotSamples = samples
		e.mu.Unlock()
		if !sleep(ctx, sampleInterval) {
			return
		}
	}
}
