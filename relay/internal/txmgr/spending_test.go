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

// asked records the requests to a cap of transfers that is reached.
type asked struct {
	noTransfers
	mu      sync.Mutex
	allowed []bool // whether each attempt was a transfer's
	ready   uint64 // the most that was asked for at admission
	most    uint64 // the most that was asked for an attempt
}

func (a *asked) Ready(ctx context.Context, transfer bool, lamports uint64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ready = max(a.ready, lamports)
	_, err := a.noTransfers.Allow(ctx, transfer, lamports)
	return err
}

func (a *asked) Allow(ctx context.Context, transfer bool, lamports uint64) (func(bool), error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.allowed, a.most = append(a.allowed, transfer), max(a.most, lamports)
	return a.noTransfers.Allow(ctx, transfer, lamports)
}

func (a *asked) seen() []bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.allowed)
}

func TestAdmissionAtTheTransferCapRefusesOnlyTransfers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.assemble(parts{spending: &asked{}})
	_, err := r.Submit(t.Context(), w.transfer())
	_ = wantCode(t, err, refusal.SpendCapReached)
	req, _ := w.withdrawal(sol)
	if _, err := r.Submit(t.Context(), req); err != nil {
		t.Errorf("a withdrawal is refused: %v", err)
	}
}

func TestTheTransferCapStopsOnlyAcceptedTransfers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.relay(nil) // never works: its submissions wait for another process
	transfer := w.submit(before, w.transfer()).ID
	req, _ := w.withdrawal(sol)
	withdrawal := w.submit(before, req).ID
	caps := &asked{}
	r := w.assemble(parts{spending: caps})
	w.run(r)
	if s := w.done(withdrawal); s.State != submission.Completed {
		t.Errorf("the withdrawal ended as %+v, failure %v", s, s.Failure)
	}
	w.eventually("the transfer waits for its cap", func() bool {
		b, err := w.store.Backlog(t.Context())
		must(t, err)
		return b.Held[string(refusal.SpendCapReached)] == 1
	})
	if s := w.get(transfer); s.Done() || r.of("signed") != 1 || !slices.Contains(caps.seen(), true) {
		t.Errorf("the transfer is %+v after %d signatures, and the cap was asked for %v", s, r.of("signed"), caps.seen())
	}
}

// A swap is no transfer, and its first leg asks the caps for the cost of both legs.
func TestTheCapOfTransfersStopsNoSwap(t *testing.T) {
	t.Parallel()
	s := newSettleWorld(t)
	r, caps := s.newSwapRun(swapGross, 1), &asked{}
	w := r.wiring(newMortal(death{}))
	w.spending = caps
	p, err := r.wire(w)
	must(t, err)
	accepted, err := p.Submit(t.Context(), r.req)
	must(t, err)
	r.end(p, accepted.ID, submission.PhaseExecuted)
	var signed int
	must(t, r.db.QueryRow(t.Context(), "SELECT count(*) FROM attempts WHERE purpose = 'transact'").Scan(&signed))
	if got := caps.seen(); len(got) < signed || slices.Contains(got, true) {
		t.Errorf("the caps are asked %v for %d attempts of the first leg", got, signed)
	}
	const least = 2*890_880 + 2_011_440 + 2_039_280 + 2*5000 // the notes, the state, the recipient's account, two fees
	if caps.ready != least || caps.most < least {
		t.Errorf("the caps are asked for %d lamports at admission and %d at the attempt, want %d and at least that", caps.ready, caps.most, least)
	}
}

// A payer's minimum balance is kept for second legs.
func TestASecondLegMayUseThePayersLeastBalance(t *testing.T) {
	t.Parallel()
	s := newSettleWorld(t)
	r := s.newSwapRun(swapGross, 1)
	life := newMortal(death{"completion", 1, true}) // once the first leg landed
	p, err := r.process(life)
	must(t, err)
	accepted, err := p.Submit(t.Context(), r.req)
	must(t, err)
	must(t, await("the first leg lands", func() (bool, error) { return life.died(), nil }))
	p.stop()
	w := r.wiring(newMortal(death{}))
	w.least = 10 * sol // more than the payer has ever held
	heir, err := r.wire(w)
	must(t, err)
	r.end(heir, accepted.ID, submission.PhaseExecuted)
}

// end waits for the swap's expected end, stops the process, and compares the amounts that the
// caps count with those spent.
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
		r.t.Errorf("the swap is %s, want %s", s.Swap.Phase, want)
	}
	for _, fault := range r.check(r.t.Context(), s, r.call.Swap.MinOutput) {
		r.t.Error(fault)
	}
}
