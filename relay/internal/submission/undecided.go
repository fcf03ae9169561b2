package submission

import (
	"context"
	"fmt"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/ledger"
)

// UndecidedStore is what ending undecided attempts needs of the store.
type UndecidedStore interface {
	// ClaimUndecided takes up to limit submissions that are held by HoldExpiry, due or not.
	ClaimUndecided(ctx context.Context, worker uuid.UUID, limit int) ([]*Claimed, error)
	Beat(ctx context.Context, w Worker, lease time.Duration) (lapsed bool, err error)
	BuryAttempts(ctx context.Context, l Lease, attempts []Burial) error
	Release(ctx context.Context, l Lease, delay time.Duration, hold string) error
	Retire(ctx context.Context, worker uuid.UUID) (freed int, err error)
}

// Search is Chain's.
type Search func(ctx context.Context, sigs []solana.Signature) (ledger.Look, error)

// decideLease is how long the submissions of one pass are held.
const decideLease = time.Minute

// DecideUndecided judges once, by the search that it is given, the attempts of all
// submissions that wait for the end of one. Those that are dead by the rule by which
// the engine goes are marked as dead, and their submissions are due at once, as are
// those of which one has landed: the relays do the rest. It gives how many were
// ended and how many still wait.
func DecideUndecided(ctx context.Context, store UndecidedStore, search Search) (ended, waiting int, err error) {
	worker := Worker{ID: uuid.New()}
	if _, err := store.Beat(ctx, worker, decideLease); err != nil {
		return 0, 0, err
	}
	defer func() {
		// What is left is given back, whatever has happened: else it waits for the lease to lapse.
		_, retireErr := store.Retire(context.WithoutCancel(ctx), worker.ID)
		if err == nil {
			err = retireErr
		}
	}()
	claimed, err := store.ClaimUndecided(ctx, worker.ID, statusBatch)
	if err != nil {
		return 0, 0, err
	}
	for _, c := range claimed {
		over, err := decideOne(ctx, store, search, c)
		if err != nil {
			return ended, waiting, err
		}
		delay, hold := time.Duration(0), ""
		if ended++; !over {
			ended, waiting = ended-1, waiting+1
			delay, hold = undecidedPause, HoldExpiry
		}
		if err := store.Release(ctx, c.Lease(), delay, hold); err != nil {
			return ended, waiting, err
		}
	}
	return ended, waiting, nil
}

// decideOne marks a submission's dead attempts as dead; over says that none is left
// of which nothing is known.
func decideOne(ctx context.Context, store UndecidedStore, search Search, c *Claimed) (over bool, err error) {
	if len(c.Live) == 0 {
		return true, nil
	}
	look, err := search(ctx, signaturesOf(c.Live))
	if err != nil {
		return false, fmt.Errorf("look attempts up: %w", err)
	}
	var dead []Burial
	over = true
	for i := range c.Live {
		switch judge(&c.Live[i], look.Statuses[i], &look) {
		case expired:
			dead = append(dead, Burial{Signature: c.Live[i].Signature})
		case landed:
			return true, nil
		case mayLand:
			over = false
		case failedOnChain, forgotten:
			// The engine knows what each costs or waits for.
		}
	}
	return over, store.BuryAttempts(ctx, c.Lease(), dead)
}
