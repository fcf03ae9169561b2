package txmgr

import (
	"context"
	"fmt"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/onchain"
)

// UndecidedStore is the part of the store that is needed to end undecided attempts.
type UndecidedStore interface {
	// ClaimUndecided claims up to limit jobs that are held by HoldExpiry, due or not.
	ClaimUndecided(ctx context.Context, worker uuid.UUID, limit int) ([]*Job, error)
	// CountUndecided counts all jobs held by HoldExpiry, including jobs that a relay has
	// claimed.
	CountUndecided(ctx context.Context) (n int, err error)
	Heartbeat(ctx context.Context, w Worker, lease time.Duration) (lapsed bool, err error)
	MarkAttemptsDead(ctx context.Context, l Lease, attempts []DeadAttempt) error
	Release(ctx context.Context, l Lease, delay time.Duration, hold string) error
	ReleaseAll(ctx context.Context, worker uuid.UUID) (freed int, err error)
}

// Search is a function like Chain.Search.
type Search func(ctx context.Context, sigs []solana.Signature) (onchain.SearchResult, error)

// decideLease is how long the claims of DecideUndecided last without a heartbeat.
const decideLease = time.Minute

// DecideUndecided searches once for the attempts of all jobs held by HoldExpiry, and marks
// expired attempts as dead. An attempt counts as expired under the same rule as for the manager.
// Jobs whose attempts are decided become due immediately, and the relays continue them.
// DecideUndecided returns how many jobs it decided, and how many are still held by HoldExpiry,
// including jobs that a relay claimed meanwhile.
func DecideUndecided(ctx context.Context, store UndecidedStore, search Search) (decided, waiting int, err error) {
	worker := Worker{ID: uuid.New()}
	if _, err := store.Heartbeat(ctx, worker, decideLease); err != nil {
		return 0, 0, err
	}
	defer func() {
		// After an error some jobs are still claimed. Without this release, the relays could claim
		// them only when the lease has lapsed.
		_, releaseErr := store.ReleaseAll(context.WithoutCancel(ctx), worker.ID)
		if err == nil {
			err = releaseErr
		}
	}()
	if decided, err = decideAll(ctx, store, search, worker); err != nil {
		return decided, 0, err
	}
	waiting, err = store.CountUndecided(ctx)
	return decided, waiting, err
}

// decideAll claims jobs until none is left, and returns how many it decided. It releases undecided
// jobs only at the end, so that it does not claim them again.
func decideAll(ctx context.Context, store UndecidedStore, search Search, worker Worker) (decided int, err error) {
	var undecided []*Job
	for more := true; more; {
		claimed, err := store.ClaimUndecided(ctx, worker.ID, statusBatch)
		if err != nil {
			return decided, err
		}
		more = len(claimed) == statusBatch
		for _, c := range claimed {
			// All searches together may take longer than the lease.
			if _, err := store.Heartbeat(ctx, worker, decideLease); err != nil {
				return decided, err
			}
			isDecided, err := decideOne(ctx, store, search, c)
			if err != nil {
				return decided, err
			}
			if !isDecided {
				undecided = append(undecided, c)
				continue
			}
			if err := store.Release(ctx, c.Lease, 0, ""); err != nil {
				return decided, err
			}
			decided++
		}
	}
	for _, c := range undecided {
		if err := store.Release(ctx, c.Lease, undecidedRetry, HoldExpiry); err != nil {
			return decided, err
		}
	}
	return decided, nil
}

// decideOne marks a job's expired attempts as dead. It returns true if an attempt has landed, or if
// no attempt can land any more.
func decideOne(ctx context.Context, store UndecidedStore, search Search, c *Job) (decided bool, err error) {
	if len(c.Live) == 0 {
		return true, nil
	}
	result, err := search(ctx, signaturesOf(c.Live))
	if err != nil {
		return false, fmt.Errorf("find attempts: %w", err)
	}
	var dead []DeadAttempt
	decided = true
	for i := range c.Live {
		switch fateOf(&c.Live[i], result.Statuses[i], &result) {
		case onchain.Expired:
			dead = append(dead, DeadAttempt{Signature: c.Live[i].Signature})
		case onchain.Landed:
			return true, nil
		case onchain.MayLand:
			decided = false
		case onchain.FailedOnChain, onchain.Forgotten:
			// The manager resolves these attempts once it has claimed the job.
		}
	}
	return decided, store.MarkAttemptsDead(ctx, c.Lease, dead)
}
