package swap

import (
	"context"
	"errors"
	"testing"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
)

// searchChain is a chain that only implements Search, which finds the transactions in
// landed.
type searchChain struct {
	txmgr.Chain
	landed map[solana.Signature]uint64
}

func (s searchChain) Search(_ context.Context, signatures []solana.Signature) (onchain.SearchResult, error) {
	result := onchain.SearchResult{Statuses: make([]*onchain.Status, len(signatures))}
	for i, signature := range signatures {
		if slot, ok := s.landed[signature]; ok {
			result.Statuses[i] = &onchain.Status{Slot: slot, Confirmation: onchain.Finalized}
		}
	}
	return result, nil
}

// TestLandedExecutionMarkedDeadIsFound: an execution that was marked as dead has landed. The
// attempt with which an earlier release created token accounts has landed too, but it did not
// end the swap.
func TestLandedExecutionMarkedDeadIsFound(t *testing.T) {
	t.Parallel()
	refund, execution, accounts := solana.Signature{1}, solana.Signature{2}, solana.Signature{3}
	h := &Handler{manager: &txmgr.Manager{Options: txmgr.Options{Chain: searchChain{landed: map[solana.Signature]uint64{accounts: 8, execution: 9}}}}}
	j := (&submission.Submission{Kind: submission.KindSwapExecution}).Job()
	j.Dead = []txmgr.Attempt{
		{Signature: accounts, Purpose: "accounts"}, {Signature: refund, Purpose: txmgr.PurposeRefund}, {Signature: execution, Purpose: txmgr.PurposeExecute},
	}
	own, err := h.findOwnEnd(t.Context(), j, &txmgr.Deferral{Reason: txmgr.HoldHistory, Cause: errors.New("too short")})
	if err != nil || own == nil || own.Signature != execution || own.Purpose != txmgr.PurposeExecute {
		t.Errorf("found %v, error %v; want the execution", own, err)
	}
}

// fakeStore is a store that records the updates of a swap.
type fakeStore struct {
	updates []submission.Swap
}

func (p *fakeStore) UpdateSwap(_ context.Context, _ txmgr.Lease, phase submission.Phase, timeout uint64) error {
	p.updates = append(p.updates, submission.Swap{Phase: phase, TimeoutSlot: timeout})
	return nil
}

// fixedPlanner is a planner that always gives the same order.
type fixedPlanner Order

func (p fixedPlanner) Next(context.Context, *submission.Submission, int, uint64) (Order, error) {
	return Order(p), nil
}

func (fixedPlanner) Rejected(*submission.Submission, *txmgr.Draft, *txmgr.Failure) error { return nil }

// TestPhaseAndTimeoutAreWrittenOnlyWhenChanged: phase and timeout are written only when they
// change. The stored timeout shows when a swap is overdue for its refund.
func TestPhaseAndTimeoutAreWrittenOnlyWhenChanged(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		order Order
		want  bool
	}{
		"the same as before":                         {Order{Phase: submission.PhaseFunded, Timeout: 100}, false},
		"another phase":                              {Order{Phase: submission.PhaseQuoted, Timeout: 100}, true},
		"another timeout of the same phase":          {Order{Phase: submission.PhaseFunded, Timeout: 101}, true},
		"no phase, because the state does not exist": {Order{}, false},
		"the end, which is written with its landing": {Order{Phase: submission.PhaseRefunded, Timeout: 101, Ended: &txmgr.Landing{Signature: solana.Signature{1}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := &fakeStore{}
			s := &submission.Submission{Kind: submission.KindSwapExecution, Swap: &submission.Swap{Phase: submission.PhaseFunded, TimeoutSlot: 100}}
			h := &Handler{store: db, planner: fixedPlanner(test.order)}
			for range 2 {
				if _, err := h.order(t.Context(), s.Job(), 0); err != nil {
					t.Fatal(err)
				}
			}
			want := 0
			if test.want {
				want = 1
			}
			if len(db.updates) != want {
				t.Fatalf("the updates are %v, want %d", db.updates, want)
			}
			if test.want && (db.updates[0] != submission.Swap{Phase: test.order.Phase, TimeoutSlot: test.order.Timeout} || s.Swap.TimeoutSlot != test.order.Timeout) {
				t.Errorf("the update is %v and the submission has %v, want %v", db.updates[0], s.Swap, test.order)
			}
		})
	}
}
