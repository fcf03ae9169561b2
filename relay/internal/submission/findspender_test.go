package submission

import (
	"context"
	"testing"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// searchableChain is a chain on which the given signatures landed, in their slots.
type searchableChain struct {
	txmgr.Chain
	landed map[solana.Signature]uint64
}

func (s searchableChain) Search(_ context.Context, signatures []solana.Signature) (onchain.SearchResult, error) {
	result := onchain.SearchResult{Statuses: make([]*onchain.Status, len(signatures))}
	for i, signature := range signatures {
		if slot, ok := s.landed[signature]; ok {
			result.Statuses[i] = &onchain.Status{Slot: slot, Confirmation: onchain.Finalized}
		}
	}
	return result, nil
}

// noCreations is a pool whose nullifiers no history contains.
type noCreations struct{ PoolState }

func (noCreations) FindCreation(context.Context, [32]byte) (*onchain.Creation, error) {
	return nil, nil
}

// TestDeadAttemptIsFoundAsSpender: an attempt that was marked as dead after wrong reports of
// endpoints may have landed.
func TestDeadAttemptIsFoundAsSpender(t *testing.T) {
	t.Parallel()
	live, dead := txmgr.Attempt{Signature: solana.Signature{1}}, txmgr.Attempt{Signature: solana.Signature{2}}
	for name, test := range map[string]struct {
		landed solana.Signature
		want   noteFact
	}{
		"a live attempt landed":            {live.Signature, notesSpentByUs},
		"an attempt marked as dead landed": {dead.Signature, notesSpentByUs},
		"another transaction landed":       {solana.Signature{3}, notesSpenderUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &Handler{Options: Options{State: noCreations{}}, Manager: &txmgr.Manager{Options: txmgr.Options{Chain: searchableChain{landed: map[solana.Signature]uint64{test.landed: 9}}}}}
			j := (&Submission{Kind: shieldpool.KindTransfer, Call: &shieldpool.Call{Inputs: &shieldpool.PublicInputs{}}}).Job()
			j.Live, j.Dead = []txmgr.Attempt{live}, []txmgr.Attempt{dead}
			p := &progress{}
			if err := h.findSpender(t.Context(), j, p); err != nil || p.notes != test.want {
				t.Fatalf("the notes are %d (%v), want %d", p.notes, err, test.want)
			}
			if test.want == notesSpentByUs && (p.landing == nil || p.landing.Signature != test.landed) {
				t.Errorf("the landing is %+v, want signature %s", p.landing, test.landed)
			}
		})
	}
}
