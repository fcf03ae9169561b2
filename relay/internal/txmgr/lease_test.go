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

// gated blocks calls until their gate opens; a nil gate is open.
type gated struct {
	txmgr.Chain
	simulate, statuses, send chan struct{}
	// first has only the first call wait.
	first bool
	// waiting counts the calls that came to a closed gate; cut the sends whose
	// context had ended when it opened.
	waiting, cut atomic.Int64
}

func (g *gated) pass(ctx context.Context, gate chan struct{}) error {
	if gate == nil {
		return nil
	}
	if n := g.waiting.Add(1); g.first && n > 1 {
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
	if err := g.pass(ctx, g.simulate); err != nil {
		return onchain.Simulation{}, err
	}
	return g.Chain.Simulate(ctx, raw, replaceBlockhash, minContextSlot)
}

func (g *gated) Statuses(ctx context.Context, sigs []solana.Signature) ([]*onchain.Status, uint64, error) {
	if err := g.pass(ctx, g.statuses); err != nil {
		return nil, 0, err
	}
	return g.Chain.Statuses(ctx, sigs)
}

func (g *gated) Send(ctx context.Context, raw []byte, preflight bool, minContextSlot uint64) error {
	if g.send != nil {
		g.waiting.Add(1)
		<-g.send
	}
	if ctx.Err() != nil {
		g.cut.Add(1)
		return ctx.Err()
	}
	return g.Chain.Send(ctx, raw, preflight, minContextSlot)
}

// keepsItsLease lets several leases pass and wants the submission to stay with its first owner.
func (w *world) keepsItsLease(s *submission.Submission) {
	w.t.Helper()
	for deadline := time.Now().Add(5 * lease / 2); time.Now().Before(deadline); time.Sleep(slot) {
		if got := w.get(s.ID); got.Epoch != 1 {
			w.t.Fatalf("the lease of a worker that is alive was taken: epoch %d", got.Epoch)
		}
	}
}

func TestAStepThatTakesLongKeepsItsLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	slow := &gated{simulate: make(chan struct{})}
	r := w.relay(func(c txmgr.Chain) txmgr.Chain { slow.Chain = c; return slow })
	w.run(r)
	s := w.takenBy(r)
	w.eventually("the step simulates", func() bool { return slow.waiting.Load() > 0 })
	heir := w.relay(nil)
	w.run(heir)
	w.keepsItsLease(s)
	close(slow.simulate)
	if s = w.done(s.ID); s.State != submission.Completed || r.of("signed") != 1 || heir.of("signed") != 0 {
		t.Errorf("the submission ended as %+v, signed %d and %d times", s, r.of("signed"), heir.of("signed"))
	}
}

func TestAChainThatHangsCostsNoLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hung := &gated{statuses: make(chan struct{})}
	r := w.relay(func(c txmgr.Chain) txmgr.Chain { hung.Chain = c; return hung })
	w.run(r)
	s := w.takenBy(r)
	w.eventually("the relay asks for the signature", func() bool { return hung.waiting.Load() > 0 })
	w.keepsItsLease(s)
	close(hung.statuses)
	if s = w.done(s.ID); s.State != submission.Completed {
		t.Errorf("the submission ended as %+v", s)
	}
}

func TestAStepThatLostItsLeaseSignsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	slow := &gated{simulate: make(chan struct{})}
	var db severed
	r := w.assemble(parts{
		chain: func(c txmgr.Chain) txmgr.Chain { slow.Chain = c; return slow },
		store: func(s submission.Store) submission.Store { db.Store = s; return &db },
	})
	w.run(r)
	id := w.takenBy(r).ID
	w.eventually("the first relay simulates", func() bool { return slow.waiting.Load() > 0 })
	db.cut.Store(true) // its heartbeat stops, and comes back later
	heir := w.relay(nil)
	w.run(heir)
	if s := w.done(id); s.State != submission.Completed || heir.of("signed") == 0 {
		t.Fatalf("the submission ended as %+v after %d signatures of the heir", s, heir.of("signed"))
	}
	db.cut.Store(false)
	close(slow.simulate)
	w.eventually("the first relay finds out", func() bool { return r.of("lease lost") > 0 })
	if r.of("signed") != 0 {
		t.Errorf("it signed %d transactions under a lease that was not its own", r.of("signed"))
	}
}

// A failover that loses a claim hands its epoch out again, perhaps to the same process: two steps
// would then have one lease, and each would sign.
func TestALeaseThatAProcessIsGivenTwiceIsSignedUnderOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	slow := &gated{simulate: make(chan struct{}), first: true}
	r := w.relay(func(c txmgr.Chain) txmgr.Chain { slow.Chain = c; return slow })
	w.run(r)
	s := w.takenBy(r)
	w.eventually("the first step simulates", func() bool { return slow.waiting.Load() > 0 })
	_, err := w.store.Pool.Exec(t.Context(), `UPDATE submissions SET state = 'pending', lease_owner = NULL, epoch = 0 WHERE id = $1`, s.ID)
	must(t, err)
	w.eventually("another step simulates", func() bool { return slow.waiting.Load() > 1 })
	close(slow.simulate)
	if s = w.done(s.ID); s.State != submission.Completed {
		t.Errorf("the submission ended as %+v", s)
	}
	w.eventually("the first step finds out", func() bool { return r.of("lease lost") > 1 })
	if n := r.of("signed"); n != 1 {
		t.Errorf("%d transactions were signed, want one", n)
	}
}

func TestAStepThatIsOutOfTimeStillSends(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	slow := &gated{send: make(chan struct{})}
	r := w.relay(func(c txmgr.Chain) txmgr.Chain { slow.Chain = c; return slow })
	stop := w.run(r)
	w.takenBy(r)
	w.eventually("it sends", func() bool { return slow.waiting.Load() > 0 })
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	select {
	case <-stopped:
		t.Fatal("the relay stopped before its send had ended")
	case <-time.After(lease): // twice what a step has left at a shutdown
	}
	close(slow.send)
	<-stopped
	if slow.cut.Load() != 0 {
		t.Error("a send was cut off")
	}
}
