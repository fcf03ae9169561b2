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

// HoldFailing is the reason while a submission waits because it keeps failing on the chain.
const HoldFailing = string(refusal.ProgramError)

const (
	// maxPaidFailures is the number of times that a submission may fail on the chain, each
	// time for the network's fee, although its simulation had just succeeded.
	maxPaidFailures = 8
	// immediateRetries is the number of failures below which the next attempt is signed at
	// once. Each further failure doubles the delay after the last signature, from
	// firstRetryDelay to maxRetryDelay.
	immediateRetries               = 2
	firstRetryDelay, maxRetryDelay = 30 * time.Second, 8 * time.Minute
)

// retryAt returns the time before which no new attempt is signed, and how many of the dead
// attempts have cost a fee.
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

// retryDelay returns the delay after the given number of paid failures.
func retryDelay(paid int) time.Duration {
	if paid < immediateRetries {
		return 0
	}
	return min(firstRetryDelay<<min(paid-immediateRetries, maxPaidFailures), maxRetryDelay)
}

// maxFailedNotes bounds the number of notes in failedNotes.
const maxFailedNotes = 10_000

// failedNotes are the notes of submissions that failed after paid failures on the chain. New
// submissions of these notes are refused for a while. Each process has its own failedNotes.
// The zero value is ready to use.
type failedNotes struct {
	mu    sync.Mutex
	notes map[[32]byte]failedNote
}

// failedNote is a note's number of paid failures, and the time until which the note is
// refused.
type failedNote struct {
	paid  int
	until time.Time
}

// expired reports whether the note has been accepted again for longer than maxRetryDelay.
func (f failedNote) expired(now time.Time) bool { return now.Sub(f.until) > maxRetryDelay }

// add records the number of paid failures of transactions with the notes.
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

// check refuses a submission with a note that is to be refused until later.
func (f *failedNotes) check(in *shieldpool.PublicInputs, now time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, key := range in.Nullifiers {
		if n := f.notes[key]; in.HasNullifier(i) && now.Before(n.until) {
			return refusal.New(refusal.RateLimited,
				"nullifier %d: transactions with it have failed on the chain %d times, each time for a fee, although their simulation had just succeeded: it is accepted again after Retry-After", i, n.paid).
				Retry(n.until.Sub(now))
		}
	}
	return nil
}

// RefuseFailedNotes refuses a call with a note whose transactions have repeatedly failed on the
// chain, until the note's delay is over.
func (h *Handler) RefuseFailedNotes(in *shieldpool.PublicInputs) error {
	return h.failedNotes.check(in, h.Now())
}

// retry signs the client's call. When earlier attempts have failed on the chain, it signs
// only after a delay, and fails the submission after too many failures. A simulation alone
// does not prevent the fees: an account may be changed between simulation and landing, even
// on purpose. ended reports that there were too many failures.
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
