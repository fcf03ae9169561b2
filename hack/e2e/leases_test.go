package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"

	"github.com/relaypool/relaypool/relay/contract"
)

const (
	// minHeld is the number of submissions that the victim holds at least, so that it still
	// holds some when the killing pod has started. At the calm rate a fleet of three holds
	// about forty.
	minHeld = 5
	// takeoverTimeout is ten times the duration of a takeover by design: 5 s for the lease of
	// a dead process, and a second until the others check. A takeover by a slower mechanism,
	// such as a row's own timeout, takes minutes.
	takeoverTimeout = time.Minute
	// leasesInterval is the time between two reads of the leases. The leases of a dead
	// process stay unchanged for three seconds at least.
	leasesInterval = 250 * time.Millisecond

	leasesSQL = `SELECT w.id, s.id, s.epoch FROM workers w LEFT JOIN submissions s ON s.lease_owner = w.id`
	// A row without a due time is finished.
	rowsSQL = `SELECT id, lease_owner, epoch, due_at IS NULL FROM submissions WHERE id = ANY($1)`
)

// leaseWatch takes snapshots of what each process holds.
type leaseWatch struct {
	s        *suite
	database string
	stop     context.CancelFunc
	reading  sync.WaitGroup

	mu        sync.Mutex
	snapshots []leaseSnapshot
	err       error // of the last read
}

// watchLeases starts to read the leases in a database, until close.
func (s *suite) watchLeases(database string) *leaseWatch {
	ctx, stop := context.WithCancel(s.ctx)
	w := &leaseWatch{s: s, database: database, stop: stop}
	w.reading.Go(func() {
		for ctx.Err() == nil {
			// Read with another connection whenever one breaks.
			err := s.stage.withDatabase(ctx, database, func(conn *pgx.Conn) error { return w.takeSnapshots(ctx, conn) })
			w.mu.Lock()
			w.err = err
			w.mu.Unlock()
			time.Sleep(leasesInterval)
		}
	})
	return w
}

func (w *leaseWatch) takeSnapshots(ctx context.Context, conn *pgx.Conn) error {
	for ; ctx.Err() == nil; time.Sleep(leasesInterval) {
		rows, err := conn.Query(ctx, leasesSQL)
		if err != nil {
			return err
		}
		snapshot := make(leaseSnapshot)
		var process uuid.UUID
		var submission *uuid.UUID // null for a process that holds nothing
		var epoch *int64
		if _, err := pgx.ForEachRow(rows, []any{&process, &submission, &epoch}, func() error {
			if snapshot[process] == nil {
				snapshot[process] = make(heldSubmissions)
			}
			if submission != nil {
				snapshot[process][*submission] = *epoch
			}
			return nil
		}); err != nil {
			return err
		}
		w.mu.Lock()
		w.snapshots, w.err = append(w.snapshots, snapshot), nil
		w.mu.Unlock()
	}
	return nil
}

// close stops the reading.
func (w *leaseWatch) close() {
	w.stop()
	w.reading.Wait()
}

// restart discards the older snapshots once the newest has as many processes as there are
// pods. A process that is missing in a later snapshot was killed after the restart.
func (w *leaseWatch) restart(t *testing.T, pods int) {
	t.Helper()
	w.s.await(t, "the database knows each relay's process, and no other", time.Minute, func(context.Context) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.snapshots) == 0 {
			return errors.Join(errors.New("no snapshot was taken"), w.err)
		}
		newest := w.snapshots[len(w.snapshots)-1]
		if len(newest) != pods {
			return fmt.Errorf("the database knows %d processes, expected %d", len(newest), pods)
		}
		w.snapshots = []leaseSnapshot{newest}
		return nil
	})
}

// awaitTakeover waits until other processes have claimed all that the killed one held.
func (w *leaseWatch) awaitTakeover(t *testing.T) {
	t.Helper()
	var dead uuid.UUID
	var held heldSubmissions
	w.s.await(t, "the killed relay's process is gone from the database", takeoverTimeout, func(context.Context) (err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		dead, held, err = findDeadProcess(w.snapshots)
		return errors.Join(err, w.err)
	})
	if len(held) == 0 {
		t.Fatal("the relay held nothing when it was killed: the takeover was not tested")
	}
	w.s.await(t, "the killed relay's submissions are taken over", takeoverTimeout, func(ctx context.Context) error {
		now, err := w.s.submissionRows(ctx, w.database, slices.Collect(maps.Keys(held)))
		if err != nil {
			return err
		}
		return takenOver(dead, held, now)
	})
	w.s.log(t, "%d submissions of the killed relay are taken over", len(held))
}

// submissionRows reads the state of submissions.
func (s *suite) submissionRows(ctx context.Context, database string, ids []uuid.UUID) (map[uuid.UUID]submissionRow, error) {
	now := make(map[uuid.UUID]submissionRow)
	err := s.stage.withDatabase(ctx, database, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, rowsSQL, ids)
		if err != nil {
			return err
		}
		var id uuid.UUID
		var owner *uuid.UUID
		var row submissionRow
		_, err = pgx.ForEachRow(rows, []any{&id, &owner, &row.Epoch, &row.Finished}, func() error {
			row.Owner = uuid.Nil
			if owner != nil {
				row.Owner = *owner
			}
			now[id] = row
			return nil
		})
		return err
	})
	return now, err
}

// busiest waits until a pod has enough submissions under way, and returns the pod with the most.
func (s *suite) busiest(t *testing.T, pods []corev1.Pod) (victim *corev1.Pod) {
	t.Helper()
	s.await(t, fmt.Sprintf("a relay holds %d submissions", minHeld), 2*time.Minute, func(ctx context.Context) error {
		most := 0.0
		for i := range pods {
			page, err := s.readMetrics(ctx, &pods[i])
			if err != nil {
				return err
			}
			parser := expfmt.NewTextParser(model.UTF8Validation)
			families, err := parser.TextToMetricFamilies(bytes.NewReader(page))
			if err != nil {
				return err
			}
			held := 0.0
			for _, name := range []string{contract.MetricInFlight.Name, contract.MetricTracked.Name} {
				for _, sample := range families[name].GetMetric() {
					held += sample.GetGauge().GetValue()
				}
			}
			if held > most {
				most, victim = held, &pods[i]
			}
		}
		if most < minHeld {
			return fmt.Errorf("the busiest relay holds %.0f", most)
		}
		return nil
	})
	return victim
}
