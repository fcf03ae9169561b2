package swap

import (
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	// maxRemembered is the most swaps that have notes, and rememberedFor is how long notes
	// are kept after their last use.
	maxRemembered = 4096
	rememberedFor = 10 * time.Minute
)

// swapNotes are what earlier tries found out about one swap; they are not notes of the pool.
// Losing them costs a few requests, so they are kept only in memory.
type swapNotes struct {
	// level is the index in routeWidths of the width to ask for first.
	level int
	// failed counts the executions that would have failed for another reason than the price.
	failed int
	// after is the name of the router that gave the last quote. The next quote begins with the
	// router that follows it.
	after string
	// otherForm says that the next refund must be for wrapped lamports although the accounts
	// suggest unwrapped ones, or the other way round.
	otherForm bool
	// refusedAsEarly is when the program last refused a refund because the timeout was
	// not reached.
	refusedAsEarly time.Time
	// stateSeen is the newest slot at which the chain showed the swap state; 0 for none.
	stateSeen uint64
	// lastRejection is the kind of the router's last rejected answer; empty for none.
	lastRejection string
	// used is when the notes were last used.
	used time.Time
}

// memory keeps the notes on swaps, by the id of the second leg.
type memory struct {
	mu    sync.Mutex
	notes map[uuid.UUID]*swapNotes
}

func newMemory() *memory { return &memory{notes: map[uuid.UUID]*swapNotes{}} }

// update changes the notes on a swap.
func (m *memory) update(id uuid.UUID, now time.Time, change func(*swapNotes)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.notes[id]
	if k == nil {
		if len(m.notes) >= maxRemembered {
			m.dropExpired(now)
		}
		if len(m.notes) >= maxRemembered {
			m.dropOldest()
		}
		k = new(swapNotes)
		m.notes[id] = k
	}
	k.used = now
	change(k)
}

// dropOldest drops the notes that have been unused for the longest time.
func (m *memory) dropOldest() {
	var oldest uuid.UUID
	var at time.Time
	for id, k := range m.notes {
		if at.IsZero() || k.used.Before(at) {
			oldest, at = id, k.used
		}
	}
	delete(m.notes, oldest)
}

func (m *memory) dropExpired(now time.Time) {
	for id, k := range m.notes {
		if now.Sub(k.used) > rememberedFor {
			delete(m.notes, id)
		}
	}
}

// get returns a copy of the notes on a swap; empty notes for an unknown swap.
func (m *memory) get(id uuid.UUID) swapNotes {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.notes[id]; k != nil {
		return *k
	}
	return swapNotes{}
}

func (m *memory) level(id uuid.UUID) int { return m.get(id).level }

func (m *memory) forget(id uuid.UUID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.notes, id)
}
