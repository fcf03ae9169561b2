package txmgr_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/feepayer"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
)

// acceptAfterSimulation is a store that accepts a submission only after a transaction was simulated.
type acceptAfterSimulation struct {
	submission.Store
	simulated chan struct{}
	// answer replaces the acceptance, unless it is nil.
	answer func() (*submission.Submission, error)
}

func (a *acceptAfterSimulation) Accept(ctx context.Context, s *submission.Submission, key []byte, worker *uuid.UUID) (*submission.Submission, error) {
	select {
	case <-a.simulated:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if a.answer != nil {
		return a.answer()
	}
	return a.Store.Accept(ctx, s, key, worker)
}

// observedSimulations sends a value after each simulation.
type observedSimulations struct {
	txmgr.Chain
	ended chan struct{}
}

func (o *observedSimulations) Simulate(ctx context.Context, raw []byte, replaceBlockhash bool, minContextSlot uint64) (onchain.Simulation, error) {
	s, err := o.Chain.Simulate(ctx, raw, replaceBlockhash, minContextSlot)
	o.ended <- struct{}{}
	return s, err
}

// TestSimulatesWhileTheAcceptanceIsCommitted: the first transaction is simulated before the commit has
// ended. If this process does not own the submission then, nothing is signed, reserved or in use.
func TestSimulatesWhileTheAcceptanceIsCommitted(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		answer  func() (*submission.Submission, error)
		noLease bool
		signed  int
	}{
		"the submission is accepted": {signed: 1},
		"the database fails": {answer: func() (*submission.Submission, error) {
			return nil, refusal.New(refusal.DatabaseUnavailable, "of the test")
		}},
		"the request repeats another":     {answer: func() (*submission.Submission, error) { return &submission.Submission{}, nil }},
		"the process has no valid leases": {noLease: true},
	}
	timing := txmgr.DefaultTiming()
	timing.Lease = time.Hour // on a busy machine a step takes seconds
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, simulated := newWorld(t), make(chan struct{}, 9)
			r := w.assemble(parts{
				timing: timing,
				chain:  func(c txmgr.Chain) txmgr.Chain { return &observedSimulations{c, simulated} },
				store:  func(s submission.Store) submission.Store { return &acceptAfterSimulation{s, simulated, test.answer} },
			})
			if !test.noLease {
				r.HeartbeatOnce(t.Context())
			}
			req, _ := w.withdrawal(sol)
			if _, err := r.Submit(t.Context(), req); err != nil && test.answer == nil {
				t.Fatal(err)
			}
			r.WaitSteps()
			if n := r.count("signed"); n != test.signed || len(simulated) != 0 {
				t.Errorf("%d signatures, and %d simulations too many; want %d and none", n, len(simulated), test.signed)
			}
			inFlight, _ := r.InProgress()
			payer := r.handler.Payers.(*feepayer.Payers).Balances()[0]
			if inFlight != test.signed || payer.InFlight != test.signed || (payer.Reserved > 0) != (test.signed > 0) {
				t.Errorf("%d submissions are in progress and %d lamports reserved for %d transactions, want %d submissions", inFlight, payer.Reserved, payer.InFlight, test.signed)
			}
		})
	}
}
