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

// deadAttemptStore keeps the attempts that are marked as dead.
type deadAttemptStore struct {
	Store
	dead []DeadAttempt
}

func (g *deadAttemptStore) MarkAttemptsDead(_ context.Context, _ Lease, attempts []DeadAttempt) error {
	g.dead = append(g.dead, attempts...)
	return nil
}

// TestDeadAttemptsRecordWhatTheyPaid: an attempt that failed on the chain paid the network's fee, but
// no rent, because it created no accounts. An attempt that never landed paid nothing.
func TestDeadAttemptsRecordWhatTheyPaid(t *testing.T) {
	t.Parallel()
	db := &deadAttemptStore{}
	e := &Manager{Options: Options{Store: db, Payers: &fakePayer{}, Observer: noObserver{}, Now: time.Now, Class: transient}}
	failed, lost, alive := solana.Signature{1}, solana.Signature{2}, solana.Signature{3}
	attempt := func(sig solana.Signature, last uint64) Attempt {
		return Attempt{Signature: sig, Purpose: PurposeTransact, Cost: 1_786_760, Fee: 5000, BlockhashSlot: 10, LastValidBlockHeight: last}
	}
	c := &Job{Kind: shieldpool.KindTransfer, Live: []Attempt{attempt(failed, 160), attempt(lost, 160), attempt(alive, 400)}}
	result := &onchain.SearchResult{
		Statuses:      []*onchain.Status{{Slot: 20, Confirmation: onchain.Finalized, Err: &shieldpool.TransactionError{Kind: "AccountInUse"}}, nil, nil},
		FinalizedSlot: 300, FinalizedHeight: 300, Slot: 300, FirstAvailable: 1,
	}
	if _, err := e.applyFates(t.Context(), c, result); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]DeadAttempt{{Signature: failed, Paid: 5000}, {Signature: lost}}, db.dead); diff != "" {
		t.Errorf("attempts marked as dead (-want +got):\n%s", diff)
	}
	if len(c.Live) != 1 || c.Live[0].Signature != alive || len(c.Dead) != 2 || c.Dead[0].Paid != 5000 || c.Dead[1].Paid != 0 {
		t.Errorf("the live attempts are %v and the dead %v; want the last one live, and the other two dead with 5000 and 0 lamports paid", c.Live, c.Dead)
	}
}
