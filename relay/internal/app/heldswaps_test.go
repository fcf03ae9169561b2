package app

import (
	"testing"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/swap"
)

// TestASwapHeldForItsPriceIsHealthy: any client can ask for a minimum that no market
// meets. Once the swap has timed out, the check of swaps reports it.
func TestASwapHeldForItsPriceIsHealthy(t *testing.T) {
	t.Parallel()
	if err := queueProblem(submission.Backlog{Held: map[string]int64{swap.ReasonPrice: 1}}, ""); err != nil {
		t.Errorf("/health is degraded while a swap waits for its price: %v", err)
	}
}
