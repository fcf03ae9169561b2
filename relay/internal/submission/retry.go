package submission

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// HoldFailing is the reason while a submission rests that the chain keeps failing.
const HoldFailing = string(refusal.ProgramError)

const (
	// maxPaidFailures is how often a submission may fail on the chain, each time for the
	// network's fee, although it was simulated without a fault a moment before.
	maxPaidFailures = 8
	// immediateRetries is how many of these failures are tried again at once. Each one more
	// doubles the rest since the last signature, from firstRetryDelay to maxRetryDelay.
	immediateRetries               = 2
	firstRetryDelay, maxRetryDelay = 30 * time.Second, 8 * time.Minute
)

// retryAt is the time before which nothing is signed anew, after the attempts that
// are dead, and how many of them were paid for.
func retryAt(dead []txmgr.Attempt) (until time.Time, paid int) {
	var last time.Time
	for i := range dead {
		if dead[i].Paid > 0 {
			paid++
			if dead[i].CreatedAt.After(last) {
				last = dead[i].CreatedAt
			}
		}
	}
	return last.Add(retryDelay(paid)), paid
}

// retryDelay is how long a rest follows the failure that is the paid-th one.
func retryDelay(paid int) time.Duration {
	if paid < immediateRetries {
		return 0
	}
	return min(firstRetryDelay<<min(paid-immediateRetries, maxPaidFailures), maxRetryDelay)
}

// maxFailedNotes is how many notes are remembered that keep failing.
const maxFailedNotes = 10_000

// failedNotes are the notes of submissions that have ended after the chain failed them, for
// a fee each time: posted again at once, in a submission anew, they rest as well. Each
// process remembers its own. The zero value is ready.
type failedNotes struct {
	mu    sync.Mutex
	notes map[[32]byte]failedNote
}

// failedNote is a note, how often it has been paid for in vain, and until when it rests.
type failedNote struct {
	paid  int
	until time.Time
}

// expired reports whether the note has been left in peace for as long as it ever rests.
func (f failedNote) expired(now time.Time) bool { return now.Sub(f.until) > maxRetryDelay }

// add notes that so many transactions with the notes were paid for in vain.
func (f *failedNotes) add(in *shieldpool.PublicInputs, paid int, now time.Time) {
	if paid == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.notes == nil {
		f.notes = map[[32]byte]failedNote{}
	}
	if len(f.notes) >= maxFailedNotes {
		maps.DeleteFunc(f.notes, func(_ [32]byte, n failedNote) bool { return n.expired(now) })
	}
	for i, key := range in.Nullifiers {
		n, known := f.notes[key]
		if !in.HasNullifier(i) || !known && len(f.notes) >= maxFailedNotes {
			continue
		}
		if n.expired(now) {
			n.paid = 0
		}
		n.paid += paid
		n.until = now.Add(retryDelay(n.paid))
		f.notes[key] = n
	}
}

// check refuses a submission of a note that rests.
func (f *failedNotes) check(in *shieldpool.PublicInputs, now time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, key := range in.Nullifiers {
		if n := f.notes[key]; in.HasNullifier(i) && now.Before(n.until) {
			return refusal.New(refusal.RateLimited,
				"nullifier %d: transactions with it have failed on the chain %d times, each time for a fee, although they had just been simulated without a fault: it is taken again after Retry-After", i, n.paid).
				Retry(n.until.Sub(now))
		}
	}
	return nil
}

// RefuseFailedNotes refuses a call with a note whose transactions keep failing on the
// chain, until it has rested.
func (h *Handler) RefuseFailedNotes(in *shieldpool.PublicInputs) error {
	return h.failedNotes.check(in, h.Now())
}

// retry signs the client's call, unless its attempts have failed on the chain: then
// after a rest, and no more when that was too often. A simulation alone does not save the
// fees: an account may be changed between it and the landing, on purpose too. ended
// says that it was too often.
func (h *Handler) retry(ctx context.Context, j *txmgr.Job, p *progress) (ended bool, err error) {
	until, paid := retryAt(j.Dead)
	switch pause := until.Sub(h.Now()); {
	case paid >= maxPaidFailures:
		return true, h.fail(ctx, j, refusal.New(refusal.ProgramError,
			"the transaction failed on the chain %d times, although each time it had just been simulated without a fault: an account that it uses changes between the two; no note was spent", paid))
	case pause > 0:
		return false, &txmgr.Deferral{
			Reason: HoldFailing, Delay: pause, Fault: true,
			Cause: fmt.Errorf("the transaction has failed on the chain %d times, each for a fee, after a simulation without a fault: it is signed anew later", paid),
		}
	}
	return false, h.launch(ctx, j, p)
}
