package txmgr_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
)

// acceptAfterSimulation is a store that commits a submission only after a transaction was simulated,
// and fails for as many as fails says.
type acceptAfterSimulation struct {
	submission.Store
	simulations *observedSimulations
	fails       atomic.Int64
}

// observedSimulations counts simulations, and sends a value for each.
type observedSimulations struct {
	txmgr.Chain
	count atomic.Int64
	ended chan struct{}
}

func (a *observedSimulations) Simulate(ctx context.Context, raw []byte, replaceBlockhash bool, minContextSlot uint64) (onchain.Simulation, error) {
	s, err := a.Chain.Simulate(ctx, raw, replaceBlockhash, minContextSlot)
	a.count.Add(1)
	a.ended <- struct{}{}
	return s, err
}

func (a *acceptAfterSimulation) Accept(ctx context.Context, s *submission.Submission, key []byte, worker *uuid.UUID) (*submission.Submission, error) {
	select {
	case <-a.simulations.ended:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if a.fails.Add(-1) >= 0 {
		return nil, refusal.New(refusal.DatabaseUnavailable, "of the test")
	}
	return a.Store.Accept(ctx, s, key, worker)
}

// TestSimulatesWhileTheAcceptanceIsCommitted: the first transaction is simulated once, before the commit
// has ended; without the commit nothing is signed or sent.
func TestSimulatesWhileTheAcceptanceIsCommitted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	simulations := &observedSimulations{ended: make(chan struct{}, 9)}
	db := &acceptAfterSimulation{simulations: simulations}
	db.fails.Store(1)
	r := w.assemble(parts{
		chain: func(c txmgr.Chain) txmgr.Chain { simulations.Chain = c; return simulations },
		store: func(s submission.Store) submission.Store { db.Store = s; return db },
	})
	r.HeartbeatOnce(t.Context())
	req, _ := w.withdrawal(sol)
	_, err := r.Submit(t.Context(), req)
	_ = wantCode(t, err, refusal.DatabaseUnavailable)
	r.WaitSteps()
	if n := r.count("signed"); n != 0 {
		t.Fatalf("%d transactions were signed for a submission that was not accepted", n)
	}
	w.run(r)
	s := w.submitTo(r)
	if s = w.done(s.ID); s.State != submission.Completed {
		t.Errorf("the submission ended as %+v, want it completed", s)
	}
	if n, signed := simulations.count.Load(), r.count("signed"); n != 2 || signed != 1 {
		t.Errorf("%d simulations and %d signatures, want one simulation for each of two submissions, and one signature", n, signed)
	}
}
