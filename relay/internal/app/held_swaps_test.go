package app

import (
	"testing"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/swap"
)

// TestASwapThatWaitsForItsPriceIsNoProblem: anybody can have a swap wait, by a
// minimum that no market meets. Past its timeout it is a problem, told by swaps.
func TestASwapThatWaitsForItsPriceIsNoProblem(t *testing.T) {
	t.Parallel()
	if err := queueProblem(submission.Backlog{Held: map[string]int64{swap.ReasonPrice: 1}}, ""); err != nil {
		t.Errorf("/health is degraded while a swap waits for its price: %v", err)
	}
}
