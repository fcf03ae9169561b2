package txmgr_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/refusal"
)

// transferCap is a spend cap that refuses transfers, and records its calls.
type transferCap struct {
	noTransfers
	mu      sync.Mutex
	allowed []bool // for each call of Allow, whether it was for a transfer
	ready   uint64 // the highest cost of a call of Ready, in lamports
	most    uint64 // the highest cost of a call of Allow, in lamports
}

func (a *transferCap) Ready(ctx context.Context, transfer bool, lamports uint64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ready = max(a.ready, lamports)
	_, err := a.noTransfers.Allow(ctx, transfer, lamports)
	return err
}

func (a *transferCap) Allow(ctx context.Context, transfer bool, lamports uint64) (func(bool), error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.allowed, a.most = append(a.allowed, transfer), max(a.most, lamports)
	return a.noTransfers.Allow(ctx, transfer, lamports)
}

func (a *transferCap) seen() []bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.allowed)
}

func TestAdmissionAtTheTransferCapRefusesOnlyTransfers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.assemble(parts{spending: &transferCap{}})
	_, err := r.Submit(t.Context(), w.transfer())
	_ = wantCode(t, err, refusal.SpendCapReached)
	req, _ := w.withdrawal(sol)
	if _, err := r.Submit(t.Context(), req); err != nil {
		t.Errorf("a withdrawal is refused: %v", err)
	}
}

func TestTransferCapHoldsOnlyAcceptedTransfers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	idle := w.relay(nil) // never runs: its submissions wait for another process
	transfer := w.submit(idle, w.transfer()).ID
	req, _ := w.withdrawal(sol)
	withdrawal := w.submit(idle, req).ID
	caps := &transferCap{}
	r := w.assemble(parts{spending: caps})
	w.run(r)
	if s := w.done(withdrawal); s.State != submission.Completed {
		t.Errorf("the withdrawal ended as %+v, failure %v; want it completed", s, s.Failure)
	}
	w.eventually("the transfer waits for its cap", func() bool {
		b, err := w.store.Backlog(t.Context())
		must(t, err)
		return b.Held[string(refusal.SpendCapReached)] == 1
	})
	if s := w.get(transfer); s.Done() || r.count("signed") != 1 || !slices.Contains(caps.seen(), true) {
		t.Errorf("the transfer is %+v after %d signatures, and the calls of Allow were for transfers: %v; want it held, 1 signature, and a call for a transfer", s, r.count("signed"), caps.seen())
	}
}

// A swap is no transfer. Before its first leg the caps check the cost of both legs.
func TestTransferCapDoesNotStopSwaps(t *testing.T) {
	t.Parallel()
	s := newSwapWorld(t)
	r, caps := s.newSwapRun(swapGross, 1), &transferCap{}
	w := r.wiring(newCrashingProcess(death{}))
	w.spending = caps
	p, err := r.wire(w)
	must(t, err)
	accepted, err := p.Submit(t.Context(), r.req)
	must(t, err)
	r.end(p, accepted.ID, submission.PhaseExecuted)
	var signed int
	must(t, r.db.QueryRow(t.Context(), "SELECT count(*) FROM attempts WHERE purpose = 'transact'").Scan(&signed))
	if got := caps.seen(); len(got) < signed || slices.Contains(got, true) {
		t.Errorf("the calls of Allow were for transfers: %v; want at least %d calls for the first leg, and none for a transfer", got, signed)
	}
	const least = 2*650_240 + 1_468_120 + 1_488_440 + 2*5000 // the notes, the state, the recipient's account, two fees
	if caps.ready != least || caps.most < least {
		t.Errorf("the caps checked %d lamports at admission and %d at the attempt, want %d and at least as many", caps.ready, caps.most, least)
	}
}

// The payers' minimum balance is kept for second legs.
func TestSecondLegMayUsePayerMinimumBalance(t *testing.T) {
	t.Parallel()
	s := newSwapWorld(t)
	r := s.newSwapRun(swapGross, 1)
	life := newCrashingProcess(death{"completion", 1, true}) // dies once the landing of the first leg is recorded
	p, err := r.process(life)
	must(t, err)
	accepted, err := p.Submit(t.Context(), r.req)
	must(t, err)
	must(t, await("the first leg lands", func() (bool, error) { return life.died(), nil }))
	p.stop()
	w := r.wiring(newCrashingProcess(death{}))
	w.least = 10 * sol // more than the payer has ever held, so that it can pay for second legs only
	newOwner, err := r.wire(w)
	must(t, err)
	r.end(newOwner, accepted.ID, submission.PhaseExecuted)
}

// end waits until the swap has ended, stops the process, and checks the phase and the spending.
func (r *swapRun) end(p *process, id uuid.UUID, want submission.Phase) {
	r.t.Helper()
	var s *submission.Submission
	err := await("the swap ends", func() (_ bool, err error) {
		s, err = r.ended(r.t.Context(), id)
		return s != nil, err
	})
	p.stop()
	must(r.t, err)
	if s.Swap.Phase != want {
		r.t.Errorf("the swap ended as %s, want %s", s.Swap.Phase, want)
	}
	for _, fault := range r.check(r.t.Context(), s, r.call.Swap.MinOutput) {
		r.t.Error(fault)
	}
}
