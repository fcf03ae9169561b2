package txmgr

import (
	"context"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// graves keeps the attempts that are marked as dead.
type graves struct {
	Store
	buried []DeadAttempt
}

func (g *graves) MarkAttemptsDead(_ context.Context, _ Lease, attempts []DeadAttempt) error {
	g.buried = append(g.buried, attempts...)
	return nil
}

// TestDeadAttemptsRecordWhatTheyPaid: one that failed on the chain paid the network's fee, and no rent for
// accounts that it did not make; one that never landed paid nothing.
func TestDeadAttemptsRecordWhatTheyPaid(t *testing.T) {
	t.Parallel()
	db := &graves{}
	e := &Manager{Options: Options{Store: db, Payers: &till{}, Observer: quiet{}, Now: time.Now, Class: transient}}
	failed, lost, alive := solana.Signature{1}, solana.Signature{2}, solana.Signature{3}
	attempt := func(sig solana.Signature, last uint64) Attempt {
		return Attempt{Signature: sig, Purpose: PurposeTransact, Cost: 1_786_760, Fee: 5000, BlockhashSlot: 10, LastValidBlockHeight: last}
	}
	c := &Job{Kind: shieldpool.KindTransfer, Live: []Attempt{attempt(failed, 160), attempt(lost, 160), attempt(alive, 400)}}
	look := &onchain.SearchResult{
		Statuses:      []*onchain.Status{{Slot: 20, Confirmation: onchain.Finalized, Err: &shieldpool.TransactionError{Kind: "AccountInUse"}}, nil, nil},
		FinalizedSlot: 300, FinalizedHeight: 300, Slot: 300, FirstAvailable: 1,
	}
	if _, err := e.applyFates(t.Context(), c, look); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]DeadAttempt{{Signature: failed, Paid: 5000}, {Signature: lost}}, db.buried); diff != "" {
		t.Errorf("burials (-want +got):\n%s", diff)
	}
	if len(c.Live) != 1 || c.Live[0].Signature != alive || len(c.Dead) != 2 || c.Dead[0].Paid != 5000 || c.Dead[1].Paid != 0 {
		t.Errorf("alive are %v and dead %v, want the last one, and the two others with what they paid", c.Live, c.Dead)
	}
}
