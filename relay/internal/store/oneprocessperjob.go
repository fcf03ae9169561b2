package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// Job is a maintenance job that one process of the fleet runs at a time.
type Job struct {
	// Name is unique, lower-case with underscores; it is a metric's label.
	Name string
	// Every is the time between two starts of the job, at least a second.
	Every time.Duration
	// Timeout ends a run's context. It is at most Every, so that runs do not overlap.
	Timeout time.Duration
	// For tells processes apart whose jobs do different work; empty for those of all processes.
	For string
	// Run does the work. It may be cancelled at any point and run again.
	Run func(ctx context.Context) error
}

// MaintenanceOptions configure a Maintenance. All fields are needed.
type MaintenanceOptions struct {
	Jobs []Job
	Log  *slog.Logger
	// SoftStop is how long runs may go on after the context of Run ends.
	SoftStop time.Duration
	// Observe is called after every run in this process with the job's name, its duration
	// and its error.
	Observe func(job string, took time.Duration, err error)
	// Now is the clock that measures runs.
	Now func() time.Time
}

// Maintenance runs each job once a period, in one process of the fleet: the process that first
// records the job's start in the database.
type Maintenance struct {
	MaintenanceOptions
	store *Store
}

// NewMaintenance checks the options.
func NewMaintenance(s *Store, o MaintenanceOptions) (*Maintenance, error) {
	if s == nil || o.Log == nil || o.Observe == nil || o.Now == nil || o.SoftStop <= 0 || len(o.Jobs) == 0 {
		return nil, errors.New("maintenance needs a store, jobs, Log, Observe, Now and a soft stop above zero")
	}
	names := map[string]bool{}
	for _, j := range o.Jobs {
		if names[j.Name] || j.Name == "" || j.Run == nil || j.Every < time.Second || j.Timeout <= 0 || j.Timeout > j.Every {
			return nil, fmt.Errorf("maintenance job %q needs a unique name, Run, a period of at least a second, and a timeout above zero and not above the period", j.Name)
		}
		names[j.Name] = true
	}
	return &Maintenance{MaintenanceOptions: o, store: s}, nil
}

// Run takes part in the maintenance until ctx ends. Jobs that are running then may go on for
// SoftStop. While the database is unreachable, Run retries.
func (m *Maintenance) Run(ctx context.Context) {
	runCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(m.SoftStop, cancel) })
	defer stop()
	var loops sync.WaitGroup
	for _, j := range m.Jobs {
		loops.Go(func() { m.loop(ctx, runCtx, j) })
	}
	loops.Wait()
}

// loop runs one job whenever it is due. It checks ten times a period.
func (m *Maintenance) loop(ctx, runCtx context.Context, j Job) {
	tick := time.NewTicker(j.Every / 10)
	defer tick.Stop()
	failing := false
	for {
		end := time.Now().Add(j.Timeout) // computed before the start is recorded, so that this run ends before the next one starts
		due, err := m.store.startJob(ctx, j)
		if err != nil && !failing && ctx.Err() == nil {
			m.Log.WarnContext(ctx, "looking for due maintenance failed; retrying", "job", j.Name, "error", err)
		}
		failing = err != nil
		if due {
			m.run(runCtx, j, end)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// run runs a job once. A failure is logged; the next period retries.
func (m *Maintenance) run(ctx context.Context, j Job, end time.Time) {
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	began := m.Now()
	err := m.runRecovering(ctx, j)
	m.Observe(j.Name, m.Now().Sub(began), err)
	if err != nil {
		m.Log.WarnContext(ctx, "maintenance job failed; retrying at the next interval", "job", j.Name, "error", err)
	}
}

func (m *Maintenance) runRecovering(ctx context.Context, j Job) (err error) {
	defer func() {
		if p := recover(); p != nil {
			m.Log.ErrorContext(ctx, "maintenance job panicked", "job", j.Name, "stack", string(debug.Stack()))
			err = fmt.Errorf("panicked: %v", p)
		}
	}()
	return j.Run(ctx)
}

// startJobSQL records that a job starts. It writes, and locks, only if the job's period has
// passed, or if the recorded start is more than a period in the future, as after a failover from
// a primary whose clock was ahead.
const startJobSQL = `
WITH restarted AS (
	UPDATE upkeep SET began_at = now() WHERE job = $1 AND (began_at <= now() - $2::interval OR began_at > now() + $2::interval) RETURNING 1
), first AS (
	INSERT INTO upkeep (job, began_at) SELECT $1, now() WHERE NOT EXISTS (SELECT FROM upkeep WHERE job = $1)
	ON CONFLICT (job) DO NOTHING RETURNING 1
)
SELECT EXISTS (SELECT FROM restarted UNION ALL SELECT FROM first)`

// startJob reports whether this process has to run the job now.
func (s *Store) startJob(ctx context.Context, j Job) (due bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, min(j.Every, 10*time.Second))
	defer cancel()
	if err := s.Pool.QueryRow(ctx, startJobSQL, j.Name+j.For, j.Every).Scan(&due); err != nil {
		return false, unavailable(fmt.Errorf("start maintenance job: %w", err))
	}
	return due, nil
}
