package submission

import (
	"sync"
	"time"
)

// slots are the places of submissions in flight.
type slots struct {
	most int

	mu   sync.Mutex
	used int
}

// take takes up to n places and returns how many it got.
func (s *slots) take(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = max(0, min(n, s.most-s.used))
	s.used += n
	return n
}

// give gives a place back.
func (s *slots) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
}

func (s *slots) taken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

// aliveness knows since when this process's leases have been good.
type aliveness struct {
	mu    sync.Mutex
	since time.Time
	ever  bool
}

// beat tells that a beat got through; again says that it was not the first.
func (a *aliveness) beat(now time.Time, lapsed bool) (again bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if lapsed || a.since.IsZero() {
		a.since = now
	}
	again, a.ever = a.ever, true
	return again
}

// missed tells that a beat did not get through.
func (a *aliveness) missed() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.since = time.Time{}
}

// lasted reports whether the leases have been good for d.
func (a *aliveness) lasted(now time.Time, d time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.since.IsZero() && now.Sub(a.since) >= d
}
