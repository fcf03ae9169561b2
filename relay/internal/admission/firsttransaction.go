package admission

import (
	"context"
	"time"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const defaultSimulationTimeout = 500 * time.Millisecond

// manyChecks is the number of requests whose checks of notes share calls so well that a simulation would save
// little. Their simulations run while their acceptances are committed, which then share commits.
const manyChecks = 16

// firstTransaction is the first transaction of a request that is being checked, with the capacity to send
// it.
type firstTransaction struct {
	submissions *submission.Handler
	timeout     time.Duration   // of the wait for the simulation
	prepared    *txmgr.Prepared // nil before prepare, and after handOver
}

// prepare reserves capacity, and starts to prepare and simulate the transaction, if it has not done so before. It
// returns false if there is no capacity, or none any more, because the process stops or its queue is paused.
func (f *firstTransaction) prepare(ctx context.Context, s *submission.Submission) bool {
	manager := f.submissions.Manager
	if f.prepared != nil && !manager.StartsJobs() {
		f.cancel()
	}
	if f.prepared == nil && manager.ReserveCapacity() {
		f.prepared = f.submissions.Prepare(ctx, s)
	}
	return f.prepared != nil
}

// simulated waits for the simulation, and reports whether it succeeded.
func (f *firstTransaction) simulated(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	return f.prepared.Succeeded(ctx)
}

// handOver returns the transaction to the caller, who has to start its job.
func (f *firstTransaction) handOver() *txmgr.Prepared {
	p := f.prepared
	f.prepared = nil
	return p
}

// cancel releases capacity and transaction, unless they were handed over.
func (f *firstTransaction) cancel() {
	if f.prepared != nil {
		f.handOver().Cancel()
		f.submissions.Manager.CancelReservation()
	}
}

// checkUnspent checks what checkNotes does. It may prepare the first transaction: its simulation shows the same,
// and so saves a call and a round trip.
func (a *Admission) checkUnspent(ctx context.Context, call *shieldpool.Call, c *Checked, mayPrepare bool) error {
	defer a.checking.Add(-1)
	if few := a.checking.Add(1) <= manyChecks; few && mayPrepare && a.needsOnlySimulation(call) && c.first.prepare(ctx, c.s) && c.first.simulated(ctx) {
		return nil
	}
	return a.checkNotes(ctx, call)
}

// needsOnlySimulation reports whether the call passes checkNotes if its transaction can succeed: the program
// refuses notes that are spent. The rules of the relay about recipients are not the program's, so the recipient's
// account has to be read if they may be broken.
func (a *Admission) needsOnlySimulation(c *shieldpool.Call) bool {
	switch c.Kind() {
	case shieldpool.KindTransfer:
		return true
	case shieldpool.KindWithdrawal:
		net, ok := a.Pool.Profile.Fees.Net(c.Inputs.Gross())
		return ok && net >= a.Submissions.RecipientMinimum()
	default: // a swap's refund goes to the recipient, who has to be a wallet
		return false
	}
}
