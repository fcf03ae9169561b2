package txmgr

import "sync"

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

// ReserveCapacity reserves capacity for a job that is about to be accepted, so that this process
// can own the job as soon as it is committed. It returns false when no capacity is left, when
// other jobs may wait for capacity, when the queue is paused, or when the process stops. The new
// job then waits in the queue, where the most urgent job goes first. After a reservation the
// caller must call Start, which uses the capacity, or CancelReservation.
func (m *Manager) ReserveCapacity() bool {
	return m.StartsJobs() && !m.rowsMayRemain.Load() && m.main().inUse.acquire(1) == 1
}

// StartsJobs reports whether this process starts new jobs: it does not stop, and the queue is not paused.
func (m *Manager) StartsJobs() bool { return m.stopping.Err() == nil && m.paused.reason() == "" }

// CancelReservation releases reserved capacity.
func (m *Manager) CancelReservation() {
	m.main().inUse.release()
	if m.rowsMayRemain.Load() { // they wait for it
		m.ClaimSoon()
	}
}
