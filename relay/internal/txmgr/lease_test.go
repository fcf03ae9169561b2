package txmgr_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
)

// gated blocks calls until their gate, a channel, is closed; a nil gate blocks nothing.
type gated struct {
	txmgr.Chain
	simulate, statuses, send chan struct{}
	// onlyFirst blocks only the first call.
	onlyFirst bool
	// waiting counts the calls that met a gate. cancelled counts the sends whose
	// context had ended when the gate opened.
	waiting, cancelled atomic.Int64
}

func (g *gated) wait(ctx context.Context, gate chan struct{}) error {
	if gate == nil {
		return nil
	}
	if n := g.waiting.Add(1); g.onlyFirst && n > 1 {
		return nil
	}
	select {
	case <-gate:
		return nil
	case <-ctx.Done():
		return &onchain.Unavailable{Kind: onchain.KindCancelled, Err: ctx.Err()}
	}
}

func (g *gated) Simulate(ctx context.Context, raw []byte, replaceBlockhash bool, minContextSlot uint64) (onchain.Simulation, error) {
	if err := g.wait(ctx, g.simulate); err != nil {
		return onchain.Simulation{}, err
	}
	return g.Chain.Simulate(ctx, raw, replaceBlockhash, minContextSlot)
}

func (g *gated) Statuses(ctx context.Context, sigs []solana.Signature) ([]*onchain.Status, uint64, error) {
	if err := g.wait(ctx, g.statuses); err != nil {
		return nil, 0, err
	}
	return g.Chain.Statuses(ctx, sigs)
}

func (g *gated) Send(ctx context.Context, raw []byte, how onchain.Sending, minContextSlot uint64) error {
	if g.send != nil {
		g.waiting.Add(1)
		<-g.send
	}
	if ctx.Err() != nil {
		g.cancelled.Add(1)
		return ctx.Err()
	}
	return g.Chain.Send(ctx, raw, how, minContextSlot)
}

// wantLeaseKept waits for the time of several leases, and checks that the submission stays with its
// first owner.
func (w *world) wantLeaseKept(s *submission.Submission) {
	w.t.Helper()
	for deadline := time.Now().Add(5 * lease / 2); time.Now().Before(deadline); time.Sleep(slot) {
		if got := w.get(s.ID); got.Epoch != 1 {
			w.t.Fatalf("the submission of a live worker was claimed by another: epoch %d, want 1", got.Epoch)
		}
	}
}

func TestSlowStepKeepsItsLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	slow := &gated{simulate: make(chan struct{})}
	r := w.relay(func(c txmgr.Chain) txmgr.Chain { slow.Chain = c; return slow })
	w.run(r)
	s := w.submitTo(r)
	w.eventually("the step simulates", func() bool { return slow.waiting.Load() > 0 })
	newOwner := w.relay(nil)
	w.run(newOwner)
	w.wantLeaseKept(s)
	close(slow.simulate)
	if s = w.done(s.ID); s.State != submission.Completed || r.count("signed") != 1 || newOwner.count("signed") != 0 {
		t.Errorf("the submission ended as %+v; the relays signed %d and %d transactions, want it completed after 1 and 0", s, r.count("signed"), newOwner.count("signed"))
	}
}

func TestHangingChainCostsNoLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hung := &gated{statuses: make(chan struct{})}
	r := w.relay(func(c txmgr.Chain) txmgr.Chain { hung.Chain = c; return hung })
	w.run(r)
	s := w.submitTo(r)
	w.eventually("the relay polls the signature", func() bool { return hung.waiting.Load() > 0 })
	w.wantLeaseKept(s)
	close(hung.statuses)
	if s = w.done(s.ID); s.State != submission.Completed {
		t.Errorf("the submission ended as %+v, want it completed", s)
	}
}

func TestAStepThatLostItsLeaseSignsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	slow := &gated{simulate: make(chan struct{})}
	var db unreachableStore
	r := w.assemble(parts{
		chain: func(c txmgr.Chain) txmgr.Chain { slow.Chain = c; return slow },
		store: func(s submission.Store) submission.Store { db.Store = s; return &db },
	})
	w.run(r)
	id := w.submitTo(r).ID
	w.eventually("the first relay simulates", func() bool { return slow.waiting.Load() > 0 })
	db.cut.Store(true) // the heartbeat stops until cut is reset
	newOwner := w.relay(nil)
	w.run(newOwner)
	if s := w.done(id); s.State != submission.Completed || newOwner.count("signed") == 0 {
		t.Fatalf("the submission ended as %+v after %d signatures of the second relay", s, newOwner.count("signed"))
	}
	db.cut.Store(false)
	close(slow.simulate)
	w.eventually("the first relay loses its lease", func() bool { return r.count("lease lost") > 0 })
	if r.count("signed") != 0 {
		t.Errorf("the first relay signed %d transactions under a lost lease, want 0", r.count("signed"))
	}
}

// After a failover that lost a claim, the database assigns the claim's epoch again, perhaps to the
// same process. Two steps would then have the same lease, and each would sign.
func TestLeaseAssignedTwiceSignsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	slow := &gated{simulate: make(chan struct{}), onlyFirst: true}
	r := w.relay(func(c txmgr.Chain) txmgr.Chain { slow.Chain = c; return slow })
	w.run(r)
	s := w.submitTo(r)
	w.eventually("the first step simulates", func() bool { return slow.waiting.Load() > 0 })
	_, err := w.store.Pool.Exec(t.Context(), `UPDATE submissions SET state = 'pending', lease_owner = NULL, epoch = 0 WHERE id = $1`, s.ID)
	must(t, err)
	w.eventually("a second step simulates", func() bool { return slow.waiting.Load() > 1 })
	close(slow.simulate)
	if s = w.done(s.ID); s.State != submission.Completed {
		t.Errorf("the submission ended as %+v, want it completed", s)
	}
	w.eventually("the lease is reported as lost twice", func() bool { return r.count("lease lost") > 1 })
	if n := r.count("signed"); n != 1 {
		t.Errorf("%d transactions were signed, want one", n)
	}
}

func TestStepPastItsDeadlineStillSends(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	slow := &gated{send: make(chan struct{})}
	r := w.relay(func(c txmgr.Chain) txmgr.Chain { slow.Chain = c; return slow })
	stop := w.run(r)
	w.submitTo(r)
	w.eventually("the relay sends", func() bool { return slow.waiting.Load() > 0 })
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	select {
	case <-stopped:
		t.Fatal("the relay stopped before its send had ended")
	case <-time.After(lease): // twice the time that a step has after a shutdown begins
	}
	close(slow.send)
	<-stopped
	if slow.cancelled.Load() != 0 {
		t.Error("a send was cancelled")
	}
}
