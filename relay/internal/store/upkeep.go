package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

// Job is a piece of upkeep that one process of the fleet does at a time.
type Job struct {
	// Name is unique, lower-case with underscores; it is a metric's label.
	Name string
	// Every is how often it is to run, at least a second.
	Every time.Duration
	// Timeout ends a run's context; not above Every, so that runs do not overlap.
	Timeout time.Duration
	// Run does it. It may be cut off at any point and be run again.
	Run func(ctx context.Context) error
}

// UpkeepOptions configure the upkeep. All fields are needed.
type UpkeepOptions struct {
	Jobs []Job
	Log  *slog.Logger
	// SoftStop is how long runs may go on after a stop.
	SoftStop time.Duration
	// Observe is told of every run in this process: the job, its time and its error.
	Observe func(job string, took time.Duration, err error)
	// Now measures runs.
	Now func() time.Time
}

// Upkeep runs jobs through River: the fleet elects a leader, which puts each job
// into the queue once a period, and one process takes it out.
type Upkeep struct {
	UpkeepOptions
	client *river.Client[pgx.Tx]
}

// upkeepQueue is the queue of the jobs, and the kind of each.
const upkeepQueue = "upkeep"

const (
	// upkeepPoll is how often a process looks for jobs of which no notification
	// came; restartDelay is the pause after a start that failed.
	upkeepPoll   = 5 * time.Second
	restartDelay = time.Second
)

// run is one run of a job, in the queue.
type run struct {
	Job string `json:"job"`
}

// Kind implements river.JobArgs.
func (run) Kind() string { return upkeepQueue }

// middle is a schedule that hits the middle of each period, as every process
// counts periods. A run is unique in its period: at its edges two clocks that
// differ would skip one or do one twice.
type middle time.Duration

// Next implements river.PeriodicSchedule.
func (m middle) Next(now time.Time) time.Time {
	every := time.Duration(m)
	next := now.UTC().Truncate(every).Add(every / 2)
	if !next.After(now) {
		next = next.Add(every)
	}
	return next
}

// NewUpkeep checks the options.
func NewUpkeep(s *Store, o UpkeepOptions) (*Upkeep, error) {
	if s == nil || o.Log == nil || o.Observe == nil || o.Now == nil || o.SoftStop <= 0 || len(o.Jobs) == 0 {
		return nil, errors.New("upkeep needs a store, jobs, Log, Observe, Now and a soft stop above zero")
	}
	u := &Upkeep{UpkeepOptions: o}
	config := &river.Config{
		Queues:            map[string]river.QueueConfig{upkeepQueue: {MaxWorkers: len(o.Jobs)}},
		Workers:           river.NewWorkers(),
		Logger:            quietMigrations(o.Log),
		SoftStopTimeout:   o.SoftStop,
		FetchPollInterval: upkeepPoll,
		MaxAttempts:       1, // the next period's run is the next try
	}
	jobs := make(map[string]Job, len(o.Jobs))
	for _, j := range o.Jobs {
		if _, twice := jobs[j.Name]; twice || j.Name == "" || j.Run == nil || j.Every < time.Second || j.Timeout <= 0 || j.Timeout > j.Every {
			return nil, fmt.Errorf("upkeep job %q needs a name of its own, Run, a period of at least a second, and a timeout above zero and not above the period", j.Name)
		}
		jobs[j.Name] = j
		config.PeriodicJobs = append(config.PeriodicJobs, periodic(j))
		// A finished run keeps its period taken, so it is kept for longer than that.
		config.CompletedJobRetentionPeriod = max(config.CompletedJobRetentionPeriod, j.Every+time.Minute)
		config.JobTimeout = max(config.JobTimeout, j.Timeout)
	}
	config.DiscardedJobRetentionPeriod = config.CompletedJobRetentionPeriod
	config.CancelledJobRetentionPeriod = config.CompletedJobRetentionPeriod
	config.RescueStuckJobsAfter = config.JobTimeout + time.Minute
	if err := river.AddWorkerSafely(config.Workers, &upkeepWorker{upkeep: u, jobs: jobs}); err != nil {
		return nil, fmt.Errorf("register upkeep: %w", err)
	}
	client, err := river.NewClient(riverpgxv5.New(s.Pool), config)
	if err != nil {
		return nil, fmt.Errorf("make upkeep: %w", err)
	}
	u.client = client
	return u, nil
}

func periodic(j Job) *river.PeriodicJob {
	insert := func() (river.JobArgs, *river.InsertOpts) {
		return run{Job: j.Name}, &river.InsertOpts{
			Queue: upkeepQueue, UniqueOpts: river.UniqueOpts{ByArgs: true, ByPeriod: j.Every},
		}
	}
	return river.NewPeriodicJob(middle(j.Every), insert, &river.PeriodicJobOpts{ID: j.Name, RunOnStart: true})
}

// Run takes part in the upkeep until ctx ends, then lets runs finish for the
// soft stop. A database that is away is waited for.
func (u *Upkeep) Run(ctx context.Context) {
	for ctx.Err() == nil {
		err := u.client.Start(ctx)
		if err == nil {
			<-u.client.Stopped()
			continue
		}
		if ctx.Err() != nil {
			return
		}
		u.Log.WarnContext(ctx, "starting maintenance failed", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(restartDelay):
		}
	}
}

// upkeepWorker runs the jobs that it finds in the queue.
type upkeepWorker struct {
	river.WorkerDefaults[run]
	upkeep *Upkeep
	jobs   map[string]Job
}

// Timeout implements river.Worker.
func (w *upkeepWorker) Timeout(j *river.Job[run]) time.Duration { return w.jobs[j.Args.Job].Timeout }

// Work implements river.Worker. A failure is told here, once, and not to the
// queue, which would tell it again.
func (w *upkeepWorker) Work(ctx context.Context, j *river.Job[run]) error {
	job, known := w.jobs[j.Args.Job]
	if !known {
		w.upkeep.Log.DebugContext(ctx, "maintenance job unknown to this release skipped", "job", j.Args.Job)
		return nil
	}
	began := w.upkeep.Now()
	err := w.runRecovering(ctx, job)
	w.upkeep.Observe(job.Name, w.upkeep.Now().Sub(began), err)
	if err != nil {
		w.upkeep.Log.WarnContext(ctx, "maintenance job failed; retrying at the next interval", "job", job.Name, "error", err)
	}
	return nil
}

func (w *upkeepWorker) runRecovering(ctx context.Context, job Job) (err error) {
	defer func() {
		if p := recover(); p != nil {
			w.upkeep.Log.ErrorContext(ctx, "maintenance job panicked", "job", job.Name, "stack", string(debug.Stack()))
			err = fmt.Errorf("panicked: %v", p)
		}
	}()
	return job.Run(ctx)
}
