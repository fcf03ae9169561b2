package rpc

import (
	"context"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
)

// slotSamples is the number of performance samples that are averaged. A sample covers a minute.
const slotSamples = 5

// SlotDuration returns how long a slot took on average in the last minutes, skipped slots included,
// according to the endpoint's performance samples. It fails if the node started a moment ago and
// has no samples yet.
func (c *Client) SlotDuration(ctx context.Context) (time.Duration, error) {
	const method = "getRecentPerformanceSamples"
	samples, err := read[[]struct {
		Slots   uint64 `json:"numSlots"`
		Seconds uint64 `json:"samplePeriodSecs"`
	}](ctx, c, method, slotSamples)
	if err != nil {
		return 0, err
	}
	var slots, seconds uint64
	for _, s := range samples {
		slots, seconds = slots+s.Slots, seconds+s.Seconds
	}
	took := time.Duration(float64(seconds) / float64(slots) * float64(time.Second))
	if slots == 0 || took < onchain.ShortestSlot || took > onchain.LongestSlot {
		return 0, onchain.Malformed(method, "%d slots in %d seconds, expected a slot of %s to %s", slots, seconds, onchain.ShortestSlot, onchain.LongestSlot)
	}
	return took, nil
}
