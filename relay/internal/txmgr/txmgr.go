// Package txmgr carries transactions to their one outcome on the chain: it prepares,
// simulates, signs, records, sends, tracks and resolves them, each action in its own file.
// It works under leases, so that any process can finish the work of any other. Its handlers
// decide what the transactions do.
//
// Its rules: an attempt is committed before its first send; the same bytes are sent until
// they have landed or can never land; no transaction is signed anew, and no job fails,
// while an earlier attempt may land.
package txmgr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Timing is the manager's intervals and timeouts.
type Timing struct {
	// Lease is how long a process without a heartbeat keeps its jobs.
	Lease time.Duration
	// Poll is the interval at which signatures are polled: one slot.
	Poll time.Duration
	// Sweep is the interval at which due rows are claimed without a notification.
	Sweep time.Duration
	// Backoff is the first pause after a temporary failure, doubled up to BackoffCap.
	Backoff, BackoffCap time.Duration
	// Hold is the pause between tries while the queue is paused.
	Hold time.Duration
}

// DefaultTiming suits Solana's 400 ms slots.
func DefaultTiming() Timing {
	return Timing{
		Lease: 5 * time.Second, Poll: 400 * time.Millisecond, Sweep: time.Second,
		Backoff: 250 * time.Millisecond, BackoffCap: 10 * time.Second, Hold: 2 * time.Second,
	}
}

// Options configure a Manager. All fields are needed.
type Options struct {
	Store    Store
	Chain    Chain
	Payers   FeePayers
	Spending Spending
	Outcomes Outcomes
	// Class classifies the failure of a transaction of the purpose.
	Class func(p Purpose, err *shieldpool.TransactionError) shieldpool.Class
	// Readable returns nil when the chain state that the jobs need can be read. The refusal
	// pool_not_initialised pauses the queue until the pool is initialised.
	Readable func(ctx context.Context) error
	// Landed is called with a landing as soon as it is observed, before it is recorded.
	Landed func(*Job, Landing)
	// Rent returns the network's rate of rent; 0 while it is unknown.
	Rent func() shieldpool.Rent
	// Writable are accounts that every transaction writes. The fees that others pay to
	// write them determine the price.
	Writable []solana.PublicKey
	Observer Observer
	Log      *slog.Logger
	Now      func() time.Time
	// Worker identifies this process among the owners of leases.
	Worker uuid.UUID
	Timing Timing
	Price  PriceRule
}

// Manager advances jobs to their outcome.
type Manager struct {
	Options
	// lanes are served concurrently. The first is the main lane, whose loop also claims
	// landed jobs.
	lanes    []*Lane
	compute  *computeLimits
	price    *priceCache
	tracker  *tracker
	recorder *recorder
	paused   queuePause
	// outage records since when no endpoint accepts transactions.
	outage sendOutage
	// leaseHealth records since when this process's leases have been valid.
	leaseHealth leaseHealth
	// mayClaimMore reports that the last claim left rows for lack of capacity.
	mayClaimMore atomic.Bool
	// orphaned are leases that the last audit found only in the database.
	orphaned map[Lease]bool
	// othersNeeded triggers a notification of other processes.
	othersNeeded chan struct{}
	// stopping ends when nothing new may be claimed. Running steps then have half a lease
	// to finish.
	stopping context.Context
	stop     context.CancelFunc
	steps    sync.WaitGroup
}

// check returns an error for an option that is missing or out of bounds.
func (o *Options) check() error {
	if o.Store == nil || o.Chain == nil || o.Payers == nil || o.Spending == nil || o.Outcomes == nil || o.Class == nil || o.Readable == nil || o.Landed == nil || o.Rent == nil ||
		o.Observer == nil || o.Log == nil || o.Now == nil || o.Worker == uuid.Nil {
		return errors.New("the transaction manager needs all of its options")
	}
	if t := o.Timing; t.Lease <= 0 || t.Poll <= 0 || t.Sweep <= 0 || t.Backoff <= 0 || t.BackoffCap < t.Backoff || t.Hold <= 0 {
		return errors.New("the transaction manager needs intervals above zero, and a BackoffCap of at least Backoff")
	}
	return nil
}

// New checks the options. Add the lanes before Run.
func New(o Options) (*Manager, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	m := &Manager{
		Options: o, outage: sendOutage{minDuration: o.Timing.Lease}, compute: newComputeLimits(), price: newPriceCache(o.Price, o.Now),
		othersNeeded: make(chan struct{}, 1),
	}
	m.stopping, m.stop = context.WithCancel(context.Background())
	m.tracker, m.recorder = newTracker(m), newRecorder(m)
	return m, nil
}

// Add adds a lane. The first is the main one: it can be paused, and accepted jobs use its
// reserved capacity.
func (m *Manager) Add(l *Lane) error {
	switch {
	case l.Handler == nil || l.Claim == nil:
		return errors.New("a lane needs a handler and a claim function")
	case l.Capacity < 1:
		return fmt.Errorf("a lane has capacity %d: expected at least 1", l.Capacity)
	case len(m.lanes) == 0 && l.Probe == nil:
		return errors.New("the main lane needs a probe function")
	}
	l.inUse.limit, l.due = l.Capacity, make(chan struct{}, 1)
	m.lanes = append(m.lanes, l)
	return nil
}

// main is the lane of clients' submissions.
func (m *Manager) main() *Lane { return m.lanes[0] }

// ReserveCapacity reserves capacity for a job that is about to be accepted, so that this
// process owns the job from its commit on. It returns false when no capacity is left, or
// when other jobs wait for it: the new job then queues with them, and the most urgent goes
// first. Start or CancelReservation ends the reservation.
func (m *Manager) ReserveCapacity() bool {
	return m.stopping.Err() == nil && m.paused.reason() == "" && !m.mayClaimMore.Load() && m.main().inUse.acquire(1) == 1
}

// CancelReservation releases reserved capacity.
func (m *Manager) CancelReservation() { m.main().inUse.release() }

// Start works on a job that was accepted with reserved capacity. The end of ctx does not
// cancel the first step.
func (m *Manager) Start(ctx context.Context, j *Job) {
	j.accepted = m.Now()
	m.start(context.WithoutCancel(ctx), m.main(), j)
}

// ClaimSoon brings the next claim forward, because something may be due.
func (m *Manager) ClaimSoon() { m.main().ClaimSoon() }

// NotifyOthers notifies all processes that a job was accepted for which this process had no
// capacity.
func (m *Manager) NotifyOthers() { signal(m.othersNeeded) }

// PollSoon brings the next poll of the chain forward.
func (m *Manager) PollSoon() { signal(m.tracker.pollSoon) }

// signal wakes a loop; one pending signal is enough.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// InProgress returns how many jobs this process has in flight, and how many landed ones it
// tracks until finalized.
func (m *Manager) InProgress() (inFlight, landed int) {
	for _, l := range m.lanes {
		inFlight += l.inUse.inUse()
	}
	return inFlight, m.tracker.landedCount()
}

// PausedBy returns why this process claims nothing; "" while it works.
func (m *Manager) PausedBy() string { return m.paused.reason() }

// start runs the first step of a job with its lease and capacity.
func (m *Manager) start(ctx context.Context, l *Lane, j *Job) {
	j.lane = l
	w, duplicate := m.tracker.add(j)
	m.steps.Go(func() {
		ctx, cancel := m.stepContext(ctx)
		defer cancel()
		if duplicate { // release the lease: the job is then claimed under a new epoch
			m.deferJob(ctx, w, ErrLeaseLost)
			return
		}
		m.step(ctx, w)
	})
}

// step advances a job under this process's lease. It drops the job at the end unless the job
// landed or is to be tracked. A step that panics must not end the process and with it every
// other job.
func (m *Manager) step(ctx context.Context, w *entry) {
	defer m.tracker.stepEnded(w)
	defer func() {
		if p := recover(); p != nil {
			m.Observer.Attempt("panic")
			m.deferJob(ctx, w, fmt.Errorf("step panicked: %v", redact(p)))
		}
	}()
	next, err := w.j.lane.Handler.Advance(ctx, w.j)
	switch {
	case err != nil:
		m.deferJob(ctx, w, err)
	case next.Landing != nil:
		m.tracker.record(w, *next.Landing)
	case next.Track:
		m.tracker.track(w)
	default:
		m.tracker.drop(w)
	}
}

// redact returns the part of a panic value that contains nothing of a request: a runtime
// error, or only the value's type.
func redact(p any) any {
	type runtimeError interface {
		error
		RuntimeError()
	}
	if err, ok := p.(runtimeError); ok {
		return err
	}
	return fmt.Sprintf("%T", p)
}

// deferJob releases the lease; the job is due again after a pause.
func (m *Manager) deferJob(ctx context.Context, w *entry, cause error) {
	defer m.tracker.drop(w)
	if errors.Is(cause, ErrLeaseLost) {
		m.Observer.Lease("lost", 1)
		m.Log.DebugContext(ctx, "lease lost to another process", "request_id", w.j.ID)
		m.release(ctx, w, 0, "") // the lease may still be this process's: perhaps only its heartbeat was late
		return
	}
	reason, level, delay := "", slog.LevelInfo, m.backoff(w.j.Tries)
	if d := (*Deferral)(nil); errors.As(cause, &d) {
		reason, delay = d.Reason, cmp.Or(d.Delay, m.Timing.Hold)
		firstLevel := slog.LevelInfo
		if d.Fault {
			m.Observer.Attempt("held")
			firstLevel = slog.LevelWarn
			m.pauseFor(ctx, d)
		}
		if level = slog.LevelDebug; w.j.Hold != reason {
			level = firstLevel
		}
		if !w.j.lane.pausable() {
			time.AfterFunc(delay, w.j.lane.ClaimSoon)
		}
	}
	m.Log.Log(ctx, level, "submission deferred", "request_id", w.j.Row.RequestID(), "delay", delay, "held", reason, "error", cause)
	m.release(ctx, w, delay, reason)
}

// release releases the lease.
func (m *Manager) release(ctx context.Context, w *entry, delay time.Duration, reason string) {
	// A cancelled step still has to release its lease, while there is time.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.Timing.Lease/2)
	defer cancel()
	if err := m.Store.Release(ctx, w.j.Lease, delay, reason); err != nil && !errors.Is(err, ErrLeaseLost) {
		m.Log.WarnContext(ctx, "lease not released; the audit will find it", "request_id", w.j.ID, "error", err)
	}
}

func (m *Manager) backoff(tries int) time.Duration {
	d := m.Timing.Backoff
	for range tries {
		if d *= 2; d >= m.Timing.BackoffCap {
			return m.Timing.BackoffCap
		}
	}
	return d
}
