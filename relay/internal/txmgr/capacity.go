package txmgr

import (
	"sync"
)

// capacity counts the jobs in flight against a limit.
type capacity struct {
	limit int

	mu   sync.Mutex
	used int
}

// acquire takes up to n units of the capacity, and returns how many it got.
func (s *capacity) acquire(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = max(0, min(n, s.limit-s.used))
	s.used += n
	return n
}

// release returns one unit.
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
