package app

import (
	"context"
	"fmt"
	"time"

	"github.com/relaypool/relaypool/relay/internal/chain"
)

func (a *App) checkFinality(context.Context) error {
	return finalityProblem(a.finality.Report(), time.Now())
}

// finalityProblem returns an error while nothing becomes final. The error also says what this
// means for accepted work.
func finalityProblem(r chain.FinalityReport, now time.Time) error {
	switch {
	case !r.Stalled || !r.Current(now):
		return nil
	case r.ProcessedAdvances:
		return fmt.Errorf("the finalized slot %d stands still for %s while slots go on; one possible cause is a migration of Solana's consensus: accepted work waits and goes on by itself; there is nothing to do",
			r.Slot, age(now, r.AdvancedAt))
	default:
		return fmt.Errorf("the chain stands still at slot %d for %s: accepted work waits and goes on by itself; see the network's status, and whether the check rpc names an endpoint that is behind", r.Slot, age(now, r.AdvancedAt))
	}
}
