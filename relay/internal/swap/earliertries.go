package swap

import (
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	// maxRemembered is the largest number of swaps that are remembered, and rememberedFor is
	// how long a swap is remembered after the last change of its earlierTries.
	maxRemembered = 4096
	rememberedFor = 10 * time.Minute
)

// earlierTries is what earlier tries found out about one swap. Its loss costs a few requests, so
// it is kept only in memory.
type earlierTries struct {
	// levels are the indices in routeWidths of the widths to ask for first, by the router that
	// is asked first; a missing one is 0.
	levels map[int]int
	// first is the router that the last pass asked first.
	first int
	// otherForm says that the next refund must be for wrapped lamports although the accounts
	// suggest unwrapped ones, or the other way round.
	otherForm bool
	// refusedAsEarly is when the program last refused a refund because the timeout was
	// not reached.
	refusedAsEarly time.Time
	// stateSeen is the newest slot that two endpoints confirm at which the chain showed the swap
	// state; 0 for none.
	stateSeen uint64
	// rejected are the rejected answers that were logged.
	rejected map[RejectedRoute]bool
	// changed is when these fields were last changed.
	changed time.Time
}

// memory keeps the earlier tries of swaps, by the id of the second leg.
type memory struct {
	mu     sync.Mutex
	bySwap map[uuid.UUID]*earlierTries
}

func newMemory() *memory { return &memory{bySwap: map[uuid.UUID]*earlierTries{}} }

// update changes the earlier tries of a swap.
func (m *memory) update(id uuid.UUID, now time.Time, change func(*earlierTries)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	tries := m.bySwap[id]
	if tries == nil {
		if len(m.bySwap) >= maxRemembered {
			m.dropExpired(now)
		}
		if len(m.bySwap) >= maxRemembered {
			m.dropOldest()
		}
		tries = &earlierTries{levels: map[int]int{}, rejected: map[RejectedRoute]bool{}}
		m.bySwap[id] = tries
	}
	tries.changed = now
	change(tries)
}

// dropOldest forgets the swap whose earlierTries has been unchanged for the longest time.
func (m *memory) dropOldest() {
	var oldest uuid.UUID
	var at time.Time
	for id, tries := range m.bySwap {
		if at.IsZero() || tries.changed.Before(at) {
			oldest, at = id, tries.changed
		}
	}
	delete(m.bySwap, oldest)
}

func (m *memory) dropExpired(now time.Time) {
	for id, tries := range m.bySwap {
		if now.Sub(tries.changed) > rememberedFor {
			delete(m.bySwap, id)
		}
	}
}

// get returns the earlier tries of a swap without their maps; the zero value for an unknown
// swap.
func (m *memory) get(id uuid.UUID) earlierTries {
	m.mu.Lock()
	defer m.mu.Unlock()
	if tries := m.bySwap[id]; tries != nil {
		shared := *tries
		shared.levels, shared.rejected = nil, nil
		return shared
	}
	return earlierTries{}
}

// level is the index in routeWidths of the width to ask for first, when the router of that
// index is asked first.
func (m *memory) level(id uuid.UUID, first int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if tries := m.bySwap[id]; tries != nil {
		return tries.levels[first]
	}
	return 0
}

func (m *memory) forget(id uuid.UUID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.bySwap, id)
}
