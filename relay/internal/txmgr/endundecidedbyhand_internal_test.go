package txmgr

import (
	"context"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/onchain"
)

// undecidedStore is a store of undecided jobs. A relay has claimed some of them.
type undecidedStore struct {
	free       []*Job
	claimed    int // by a relay
	heartbeats int
	undecided  int // released as still undecided
}

func (d *undecidedStore) ClaimUndecided(_ context.Context, _ uuid.UUID, limit int) (out []*Job, err error) {
	n := min(limit, len(d.free))
	out, d.free = d.free[:n], d.free[n:]
	return out, nil
}

func (d *undecidedStore) CountUndecided(context.Context) (int, error) {
	return d.claimed + d.undecided, nil
}

func (d *undecidedStore) Heartbeat(context.Context, Worker, time.Duration) (bool, error) {
	d.heartbeats++
	return false, nil
}

func (d *undecidedStore) MarkAttemptsDead(context.Context, Lease, []DeadAttempt) error { return nil }

// Release makes undecided jobs claimable again.
func (d *undecidedStore) Release(_ context.Context, l Lease, _ time.Duration, hold string) error {
	if hold == HoldExpiry {
		d.undecided++
		d.free = append(d.free, &Job{Lease: l})
	}
	return nil
}

func (d *undecidedStore) ReleaseAll(context.Context, uuid.UUID) (int, error) { return 0, nil }

// TestDecideUndecidedDecidesEachJobOnce: each job is searched once, and heartbeats keep the lease no matter how
// long the searches take.
func TestDecideUndecidedDecidesEachJobOnce(t *testing.T) {
	t.Parallel()
	const all, alive, claimed = 2*statusBatch + 50, 300, 7
	d := &undecidedStore{claimed: claimed}
	for n := range all {
		c := &Job{Lease: Lease{ID: uuid.New()}}
		if n < alive {
			c.Live = []Attempt{{Signature: solana.Signature{1}, LastValidBlockHeight: 1000}}
		}
		d.free = append(d.free, c)
	}
	searches := 0
	decided, waiting, err := DecideUndecided(t.Context(), d, func(_ context.Context, s []solana.Signature) (onchain.SearchResult, error) {
		searches++
		return onchain.SearchResult{Statuses: make([]*onchain.Status, len(s)), FinalizedSlot: 10, FinalizedHeight: 10, FirstAvailable: 1}, nil
	})
	if err != nil || decided != all-alive || waiting != alive+claimed || searches != alive {
		t.Errorf("%d jobs are decided and %d wait after %d searches (%v), want %d, %d and %d", decided, waiting, searches, err, all-alive, alive+claimed, alive)
	}
	if d.heartbeats < searches {
		t.Errorf("there were %d heartbeats in %d searches, want at least one for each", d.heartbeats, searches)
	}
}
