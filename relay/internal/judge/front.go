package judge

import (
	"sync"
	"time"
)

// recently is how long a slot counts as one that somebody is at: a front that
// nobody confirms is dropped, so that one wrong answer does not condemn the others.
const recently = 30 * time.Second

// Front is the newest confirmed slot that any of several endpoints answered
// from, and how far each is behind it. Safe for concurrent use.
type Front struct {
	mu  sync.Mutex
	all []position
}

type position struct {
	high   uint64 // the highest slot that counts
	highAt time.Time
	last   uint64 // of the newest answer
	lag    uint64
	at     time.Time
}

// NewFront is for n endpoints.
func NewFront(n int) *Front { return &Front{all: make([]position, n)} }

// Best is the newest slot of all; 0 when none is known.
func (f *Front) Best(now time.Time) (best uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.all {
		if now.Sub(p.highAt) <= recently {
			best = max(best, p.high)
		}
	}
	return best
}

// Saw takes into account that endpoint i answered from the slot, to a call that
// began when the best was known to be best: the difference is what it lacks for certain.
func (f *Front) Saw(i int, slot, best uint64, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := &f.all[i]
	if slot >= p.high || now.Sub(p.highAt) > recently {
		p.high, p.highAt = slot, now
	}
	p.last, p.at, p.lag = slot, now, 0
	if best > slot {
		p.lag = best - slot
	}
}

// Lag is by how many slots endpoint i was behind when it last answered, and
// when that was; the zero time when it never did.
func (f *Front) Lag(i int) (lag uint64, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.all[i].lag, f.all[i].at
}

// Slot is where endpoint i stood when it last answered.
func (f *Front) Slot(i int) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.all[i].last
}
