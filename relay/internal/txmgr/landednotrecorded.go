package txmgr

// LandedNotRecorded counts the jobs that match and that landed up to a slot, as this process has
// observed, while the database still has them among those that have not landed: a landing is recorded
// once its leaves are known, which can take longer than a slot.
func (m *Manager) LandedNotRecorded(slot uint64, match func(*Job) bool) (n int) {
	m.recorder.mu.Lock()
	defer m.recorder.mu.Unlock()
	for q := range m.recorder.unrecorded {
		if q.landing.Slot <= slot && match(q.entry.j) {
			n++
		}
	}
	return n
}
