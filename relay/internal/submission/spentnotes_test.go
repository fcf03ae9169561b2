package submission

import (
	"context"
	"testing"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// searched knows signatures; no other call to the chain is made.
type searched struct {
	txmgr.Chain
	landed map[solana.Signature]uint64
}

func (s searched) Search(_ context.Context, signatures []solana.Signature) (onchain.SearchResult, error) {
	look := onchain.SearchResult{Statuses: make([]*onchain.Status, len(signatures))}
	for i, signature := range signatures {
		if slot, ok := s.landed[signature]; ok {
			look.Statuses[i] = &onchain.Status{Slot: slot, Confirmation: onchain.Finalized}
		}
	}
	return look, nil
}

// unmade is a pool whose nullifiers are in no history.
type unmade struct{ PoolState }

func (unmade) FindCreation(context.Context, [32]byte) (*onchain.Creation, error) { return nil, nil }

// TestDeadAttemptsMayBeTheSpender: an attempt that was marked as dead by wrong reports
// of endpoints may have landed after all.
func TestDeadAttemptsMayBeTheSpender(t *testing.T) {
	t.Parallel()
	live, dead := txmgr.Attempt{Signature: solana.Signature{1}}, txmgr.Attempt{Signature: solana.Signature{2}}
	for name, test := range map[string]struct {
		landed solana.Signature
		want   noteFact
	}{
		"one that is alive":        {live.Signature, notesSpentByUs},
		"one that counts as dead":  {dead.Signature, notesSpentByUs},
		"none that is known of us": {solana.Signature{3}, notesUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &Handler{Options: Options{State: unmade{}}, Manager: &txmgr.Manager{Options: txmgr.Options{Chain: searched{landed: map[solana.Signature]uint64{test.landed: 9}}}}}
			j := (&Submission{Kind: shieldpool.KindTransfer, Call: &shieldpool.Call{Inputs: &shieldpool.PublicInputs{}}}).Job()
			j.Live, j.Dead = []txmgr.Attempt{live}, []txmgr.Attempt{dead}
			p := &progress{}
			if err := h.findSpender(t.Context(), j, p); err != nil || p.notes != test.want {
				t.Fatalf("the notes are %d (%v), want %d", p.notes, err, test.want)
			}
			if test.want == notesSpentByUs && (p.landing == nil || p.landing.Signature != test.landed) {
				t.Errorf("the landing is %+v, want that of %s", p.landing, test.landed)
			}
		})
	}
}
