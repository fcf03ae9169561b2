package submission

import (
	"maps"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// maxFailedNotes bounds the number of notes in failedNotes.
const maxFailedNotes = 10_000

// failedNotes are the notes of failed submissions whose transactions failed on the chain and so
// cost fees. New submissions of these notes are refused for a while. Each process has its own
// failedNotes. The zero value is ready to use.
type failedNotes struct {
	mu    sync.Mutex
	notes map[[32]byte]failedNote
}

// failedNote has a note's number of paid failures, which are failures on the chain, and the time
// until which the note is refused.
type failedNote struct {
	paid  int
	until time.Time
}

// expired reports whether until passed more than maxRetryDelay ago. The failures then no longer
// count.
func (f failedNote) expired(now time.Time) bool { return now.Sub(f.until) > maxRetryDelay }

// add adds a submission's number of paid failures to each of its notes.
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

// check refuses a submission if the delay of one of its notes is not over.
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
