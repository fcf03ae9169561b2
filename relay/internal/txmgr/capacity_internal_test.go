package txmgr

import (
	"context"
	"testing"
)

// A row that waits for capacity is claimed as soon as a request that was being checked releases it.
func TestReleasedCapacityIsClaimed(t *testing.T) {
	t.Parallel()
	for name, rowsRemain := range map[string]bool{"rows wait": true, "none waits": false} {
		m := new(Manager)
		m.stopping, m.stop = context.WithCancel(t.Context())
		q := &Queue{due: make(chan struct{}, 1)}
		q.inUse.limit = 1
		m.queues = []*Queue{q}
		if !m.ReserveCapacity() || m.ReserveCapacity() {
			t.Fatalf("%s: not exactly one of two requests gets the only capacity", name)
		}
		m.rowsMayRemain.Store(rowsRemain)
		m.CancelReservation()
		if claims := len(q.due) > 0; claims != rowsRemain || q.inUse.inUse() != 0 {
			t.Errorf("%s: a claim is due: %t, and %d of the capacity is in use; want %t and 0", name, claims, q.inUse.inUse(), rowsRemain)
		}
		m.stop()
		if m.StartsJobs() {
			t.Errorf("%s: a process that stops starts new jobs", name)
		}
	}
}
