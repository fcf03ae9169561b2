package txmgr

import (
	"sync"
	"time"
)

// capacity are the places of jobs in flight.
type capacity struct {
	limit int

	mu   sync.Mutex
	used int
}

// acquire takes up to n places and returns how many it got.
func (s *capacity) acquire(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = max(0, min(n, s.limit-s.used))
	s.used += n
	return n
}

// release gives a place back.
func (s *capacity) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
}

func (s *capacity) inUse() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

// leaseHealth knows since when this process's leases have been good.
type leaseHealth struct {
	mu            sync.Mutex
	since         time.Time
	renewedBefore bool
}

// renewed tells that a beat got through; again says that it was not the first.
func (a *leaseHealth) renewed(now time.Time, lapsed bool) (again bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if lapsed || a.since.IsZero() {
		a.since = now
	}
	again, a.renewedBefore = a.renewedBefore, true
	return again
}

// failed tells that a beat did not get through.
func (a *leaseHealth) failed() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.since = time.Time{}
}

// validFor reports whether the leases have been good for d.
func (a *leaseHealth) validFor(now time.Time, d time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.since.IsZero() && now.Sub(a.since) >= d
}
