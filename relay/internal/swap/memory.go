package swap

import (
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	// maxRemembered bounds the number of swaps with notes, and rememberedFor is how long
	// notes are kept after their last use.
	maxRemembered = 4096
	rememberedFor = 10 * time.Minute
)

// notes is what earlier rounds found out about one swap. Losing it costs a few requests,
// so it is kept in memory only.
type notes struct {
	// level is how narrow a route was asked for last.
	level int
	// other says that the refund that the accounts suggest would fail.
	other bool
	// notReached is when the program last said that the timeout is not reached.
	notReached time.Time
	// held is the newest slot at which the state was seen; 0 for none.
	held uint64
	// warnedOf is the last finding that was logged about the router.
	warnedOf string
	// used is when the notes were last used.
	used time.Time
}

// memory is the notes, by second leg.
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

// dropOldest makes room by dropping the notes that were not used for longest.
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

// recall returns the notes on a swap; empty ones for a swap that is not known.
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
