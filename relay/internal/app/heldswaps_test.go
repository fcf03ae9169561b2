package app

import (
	"testing"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/swap"
)

// Any client can ask for a minimum that no market meets, so such a swap does not degrade
// the health. Once the swap has timed out, checkSwaps reports it.
func TestASwapHeldForItsPriceIsHealthy(t *testing.T) {
	t.Parallel()
	if err := queueProblem(submission.Backlog{Held: map[string]int64{swap.ReasonPrice: 1}}, ""); err != nil {
		t.Errorf("problem of the queue is %v, want none while a swap waits for its price", err)
	}
}
