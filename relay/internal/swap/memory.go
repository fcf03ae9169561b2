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

// notes are what earlier rounds found out about one swap. Losing them costs a few requests,
// so they are kept only in memory.
type notes struct {
	// level is the index in routeWidths to ask for first.
	level int
	// other says that a refund has to take the other form, wrapped or not, than the
	// accounts suggest.
	other bool
	// notReached is when the program last refused a refund because the timeout was not
	// reached.
	notReached time.Time
	// held is the newest slot at which the chain showed the state; 0 for none.
	held uint64
	// warnedOf is the last kind of rejected answer that was logged.
	warnedOf string
	// used is when the notes were last used.
	used time.Time
}

// memory keeps the notes on swaps, by the id of the second leg.
type memory struct {
	mu sync.Mutex
	of map[uuid.UUID]*notes
}

func newMemory() *memory { return &memory{of: map[uuid.UUID]*notes{}} }

// note changes the notes on a swap.
func (m *memory) note(id uuid.UUID, now time.Time, change func(*notes)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.of[id]
	if k == nil {
		if len(m.of) >= maxRemembered {
			m.sweep(now)
		}
		if len(m.of) >= maxRemembered {
			m.dropOldest()
		}
		k = new(notes)
		m.of[id] = k
	}
	k.used = now
	change(k)
}

// dropOldest drops the notes that have been unused for longest.
func (m *memory) dropOldest() {
	var oldest uuid.UUID
	var at time.Time
	for id, k := range m.of {
		if at.IsZero() || k.used.Before(at) {
			oldest, at = id, k.used
		}
	}
	delete(m.of, oldest)
}

func (m *memory) sweep(now time.Time) {
	for id, k := range m.of {
		if now.Sub(k.used) > rememberedFor {
			delete(m.of, id)
		}
	}
}

// recall returns a copy of the notes on a swap; empty notes for an unknown swap.
func (m *memory) recall(id uuid.UUID) notes {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.of[id]; k != nil {
		return *k
	}
	return notes{}
}

func (m *memory) level(id uuid.UUID) int { return m.recall(id).level }

func (m *memory) forget(id uuid.UUID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.of, id)
}
