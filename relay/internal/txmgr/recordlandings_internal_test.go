package txmgr

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
)

// hungStore is a database whose writes never end.
type hungStore struct{ Outcomes }

func (hungStore) Finalize(ctx context.Context, _ []Landed) ([]Lease, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A shutdown leaves time for one hanging write, not for several in a row.
func TestFinalFlushEndsWithinOneLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &Manager{Options: Options{
			Outcomes: hungStore{}, Log: slog.New(slog.DiscardHandler), Timing: DefaultTiming(),
		}}
		r := newRecorder(e)
		for range 10 * recordBatch {
			r.finalized = append(r.finalized, &landedEntry{Landed: Landed{Job: &Job{Lease: Lease{ID: uuid.New(), Epoch: 1}}}})
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		began := time.Now()
		r.run(ctx)
		if took := time.Since(began); took > e.Timing.Lease {
			t.Errorf("the recorder ended after %s, want %s at most", took, e.Timing.Lease)
		}
	})
}
