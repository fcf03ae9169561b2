package txmgr

import (
	"context"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/onchain"
)

// docket is the undecided jobs; a relay has claimed some of them.
type docket struct {
	free      []*Job
	held      int
	beats     int
	undecided int
}

func (d *docket) ClaimUndecided(_ context.Context, _ uuid.UUID, limit int) (out []*Job, err error) {
	n := min(limit, len(d.free))
	out, d.free = d.free[:n], d.free[n:]
	return out, nil
}

func (d *docket) CountUndecided(context.Context) (int, error) { return d.held + d.undecided, nil }

func (d *docket) Heartbeat(context.Context, Worker, time.Duration) (bool, error) {
	d.beats++
	return false, nil
}

func (d *docket) MarkAttemptsDead(context.Context, Lease, []DeadAttempt) error { return nil }

// Release offers undecided jobs again.
func (d *docket) Release(_ context.Context, l Lease, _ time.Duration, hold string) error {
	if hold == HoldExpiry {
		d.undecided++
		d.free = append(d.free, &Job{Lease: l})
	}
	return nil
}

func (d *docket) ReleaseAll(context.Context, uuid.UUID) (int, error) { return 0, nil }

// TestAPassDecidesAllThatWaits: any number of jobs, once each, under a lease that is kept no matter
// how long the searches take.
func TestAPassDecidesAllThatWaits(t *testing.T) {
	t.Parallel()
	const all, alive, held = 2*statusBatch + 50, 300, 7
	d := &docket{held: held}
	for n := range all {
		c := &Job{Lease: Lease{ID: uuid.New()}}
		if n < alive {
			c.Live = []Attempt{{Signature: solana.Signature{1}, LastValidBlockHeight: 1000}}
		}
		d.free = append(d.free, c)
	}
	searches := 0
	ended, waiting, err := DecideUndecided(t.Context(), d, func(_ context.Context, s []solana.Signature) (onchain.SearchResult, error) {
		searches++
		return onchain.SearchResult{Statuses: make([]*onchain.Status, len(s)), FinalizedSlot: 10, FinalizedHeight: 10, FirstAvailable: 1}, nil
	})
	if err != nil || ended != all-alive || waiting != alive+held || searches != alive {
		t.Errorf("%d are ended and %d wait after %d searches (%v), want %d, %d and %d", ended, waiting, searches, err, all-alive, alive+held, alive)
	}
	if d.beats < searches {
		t.Errorf("the lease is kept %d times in %d searches", d.beats, searches)
	}
}
