package submission

import (
	"context"
	"errors"
	"testing"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// searched knows signatures; of the chain nothing else is asked.
type searched struct {
	Chain
	landed map[solana.Signature]uint64
}

func (s searched) Search(_ context.Context, signatures []solana.Signature) (ledger.Look, error) {
	look := ledger.Look{Statuses: make([]*ledger.Status, len(signatures))}
	for i, signature := range signatures {
		if slot, ok := s.landed[signature]; ok {
			look.Statuses[i] = &ledger.Status{Slot: slot, Confirmation: ledger.Finalized}
		}
	}
	return look, nil
}

// TestAnExecutionThatCountsAsDeadIsFound: it landed although it was buried. What an
// earlier release made token accounts with has landed too, and settled nothing.
func TestAnExecutionThatCountsAsDeadIsFound(t *testing.T) {
	t.Parallel()
	refund, execution, accounts := solana.Signature{1}, solana.Signature{2}, solana.Signature{3}
	e := &Engine{EngineOptions: EngineOptions{Chain: searched{landed: map[solana.Signature]uint64{accounts: 8, execution: 9}}}}
	c := &Claimed{Submission: &Submission{Kind: KindSwapExecution}, Dead: []Attempt{
		{Signature: accounts, Purpose: "accounts"}, {Signature: refund, Purpose: PurposeRefund}, {Signature: execution, Purpose: PurposeExecute},
	}}
	own, err := e.findOwnExecution(t.Context(), c, &Deferral{Reason: HoldHistory, Cause: errors.New("too short")})
	if err != nil || own == nil || own.Signature != execution || own.Phase != PhaseExecuted {
		t.Errorf("found %v (%v), want the execution: the swap waits for a history that it does not need", own, err)
	}
}

// TestOnlyWhatCameBackToOurPayersIsTakenOffTheCaps.
func TestOnlyWhatCameBackToOurPayersIsTakenOffTheCaps(t *testing.T) {
	t.Parallel()
	ours, strangers := solana.Signature{2}, solana.Signature{3}
	execution := Attempt{Signature: ours, Purpose: PurposeExecute}
	tests := map[string]struct {
		landed solana.Signature
		live   []Attempt
		want   uint64
	}{
		"our own execution brings the state's back":   {ours, []Attempt{execution}, shieldpool.SwapStateRent},
		"a stranger's execution pays it to him":       {strangers, []Attempt{execution}, 0},
		"a stranger's execution before we signed one": {strangers, nil, 0},
		"our refund brings nothing back":              {ours, []Attempt{{Signature: ours, Purpose: PurposeRefund}}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &Claimed{Submission: &Submission{Kind: KindSwapExecution}, Live: test.live}
			if got := newLandedEntry(c, &Outcome{Signature: test.landed, Phase: PhaseExecuted}).returned; got != test.want {
				t.Errorf("%d lamports are taken off what was spent, want %d", got, test.want)
			}
		})
	}
}
