package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

// wakeUp is a queue job: one short step of one submission. It carries nothing
// else, because the row is the truth.
type wakeUp struct {
	SubmissionID uuid.UUID `json:"submission_id"`
}

// Kind names the job in the queue's table.
func (wakeUp) Kind() string { return "advance_submission" }

// QueueOptions configure the queue.
type QueueOptions struct {
	// Advance takes a submission one step further. An error is logged by the
	// queue and the job tried again.
	Advance func(ctx context.Context, id uuid.UUID) error
	// Workers is how many steps run at once.
	Workers int
	// StepTimeout ends a step that hangs; the row's lease lets it be repeated.
	StepTimeout time.Duration
	// SoftStop is how long running steps may finish after a stop.
	SoftStop time.Duration
	Log      *slog.Logger
}

// Queue wakes workers up through River.
type Queue struct{ client *river.Client[pgx.Tx] }

// fetchCooldown is the least time between two fetches: River's default of
// 100 ms would be most of a submission's latency.
const fetchCooldown = 2 * time.Millisecond

type waking struct {
	river.WorkerDefaults[wakeUp]
	advance func(ctx context.Context, id uuid.UUID) error
	timeout time.Duration
}

// Work implements river.Worker.
func (w *waking) Work(ctx context.Context, job *river.Job[wakeUp]) error {
	return w.advance(ctx, job.Args.SubmissionID)
}

// Timeout implements river.Worker.
func (w *waking) Timeout(*river.Job[wakeUp]) time.Duration { return w.timeout }

// NewQueue makes the queue and lets the store insert wake-ups.
func NewQueue(s *Store, o QueueOptions) (*Queue, error) {
	if o.Advance == nil || o.Log == nil || o.Workers < 1 || o.StepTimeout <= 0 || o.SoftStop <= 0 {
		return nil, errors.New("the queue needs Advance, Log, at least one worker, a step timeout and a soft stop")
	}
	workers := river.NewWorkers()
	if err := river.AddWorkerSafely(workers, &waking{advance: o.Advance, timeout: o.StepTimeout}); err != nil {
		return nil, fmt.Errorf("register worker: %w", err)
	}
	client, err := river.NewClient(riverpgxv5.New(s.Pool), &river.Config{
		Queues:                      map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: o.Workers, FetchCooldown: fetchCooldown}},
		Workers:                     workers,
		Logger:                      quiet(o.Log),
		SoftStopTimeout:             o.SoftStop,
		CompletedJobRetentionPeriod: time.Minute,
		CancelledJobRetentionPeriod: time.Hour,
		DiscardedJobRetentionPeriod: time.Hour,
		JobTimeout:                  o.StepTimeout,
		RescueStuckJobsAfter:        10 * o.StepTimeout,
	})
	if err != nil {
		return nil, fmt.Errorf("make queue: %w", err)
	}
	q := &Queue{client: client}
	s.waker = q
	return q, nil
}

// Run works the queue until ctx ends, then lets running steps finish.
func (q *Queue) Run(ctx context.Context) error {
	if err := q.client.Start(ctx); err != nil {
		return fmt.Errorf("start queue: %w", err)
	}
	<-q.client.Stopped()
	return nil
}

func (q *Queue) wake(ctx context.Context, tx pgx.Tx, w wakeUp, delay time.Duration) error {
	var opts *river.InsertOpts
	if delay > 0 {
		opts = &river.InsertOpts{ScheduledAt: time.Now().Add(delay)}
	}
	if _, err := q.client.InsertTx(ctx, tx, w, opts); err != nil {
		return fmt.Errorf("queue wake-up: %w", err)
	}
	return nil
}

// wake queues a wake-up in the transaction; without a queue the sweeper of due
// rows does the waking.
func (s *Store) wake(ctx context.Context, tx pgx.Tx, w wakeUp, delay time.Duration) error {
	if s.waker == nil {
		return nil
	}
	return s.waker.wake(ctx, tx, w, delay)
}
