package txmgr_test

import (
	"context"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
)

// slowRecords is a database that records no landing while it is blocked.
type slowRecords struct {
	submission.Store
	blocked atomic.Bool
}

func (s *slowRecords) Complete(ctx context.Context, l []submission.Landing) ([]txmgr.Lease, error) {
	if s.blocked.Load() {
		return nil, onchain.ErrUnavailable
	}
	return s.Store.Complete(ctx, l)
}

// The leaves of a landing that is not recorded yet are in the tree account. If the submission also
// counted as ahead, later ones would be refused although there is room for them.
func TestLandingsThatAreNotRecordedKeepThePoolNotBusy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	db := &slowRecords{}
	db.blocked.Store(true)
	r := w.assemble(parts{store: func(s submission.Store) submission.Store { db.Store = s; return db }})
	late, _ := w.withdrawal(sol / 10)
	var ids []uuid.UUID
	for range 30 { // after these there is room for 19 more under the root of the late one
		req, _ := w.withdrawal(sol / 10)
		ids = append(ids, w.submit(r, req).ID)
	}
	w.run(r)
	w.eventually("all have landed", func() bool { return r.LandedNotRecorded(math.MaxUint64, anyJob) == len(ids) })
	ids = append(ids, w.submit(r, late).ID)
	db.blocked.Store(false)
	for _, id := range ids {
		if s := w.done(id); s.State != submission.Completed {
			t.Errorf("a submission ended as %+v, want it completed", s)
		}
	}
	w.eventually("every landing counts as recorded", func() bool { return r.LandedNotRecorded(math.MaxUint64, anyJob) == 0 })
}

func TestLandingsThatAreNotRecordedFreeTheirCapacityUnlessTheyAreMany(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	db := &slowRecords{}
	db.blocked.Store(true)
	r := w.assemble(parts{concurrency: 1, store: func(s submission.Store) submission.Store { db.Store = s; return db }})
	w.run(r)
	var ids []uuid.UUID
	for range 4 { // the first uses the capacity, the others wait in the queue
		req, _ := w.withdrawal(sol / 10)
		ids = append(ids, w.submit(r, req).ID)
	}
	// The second keeps its capacity, because as many landings as there is capacity are not recorded.
	w.eventually("two have landed", func() bool { return r.LandedNotRecorded(math.MaxUint64, anyJob) == 2 })
	time.Sleep(10 * slot)
	if n, _ := r.InProgress(); n != 1 || r.count("signed") != 2 {
		t.Errorf("%d jobs use capacity and %d are signed, want 1 and 2 while no landing is recorded", n, r.count("signed"))
	}
	db.blocked.Store(false)
	for _, id := range ids {
		if s := w.done(id); s.State != submission.Completed {
			t.Errorf("a submission ended as %+v, want it completed", s)
		}
	}
	w.eventually("no capacity is used", func() bool { n, _ := r.InProgress(); return n == 0 })
}

func anyJob(*txmgr.Job) bool { return true }
