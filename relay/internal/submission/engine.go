package submission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Timing is the engine's rhythm.
type Timing struct {
	// Lease is how long a process that says nothing keeps its submissions.
	Lease time.Duration
	// Poll is how often signatures are asked for: once a slot.
	Poll time.Duration
	// Sweep is how often due rows are looked for that nobody told of.
	Sweep time.Duration
	// Backoff is the first pause after a temporary failure, doubled up to BackoffCap.
	Backoff, BackoffCap time.Duration
	// Hold is the pause between tries while the deployment holds the queue.
	Hold time.Duration
}

// DefaultTiming suits Solana's 400 ms slots.
func DefaultTiming() Timing {
	return Timing{
		Lease: 5 * time.Second, Poll: 400 * time.Millisecond, Sweep: time.Second,
		Backoff: 250 * time.Millisecond, BackoffCap: 10 * time.Second, Hold: 2 * time.Second,
	}
}

// PriceRule bounds the priority fee, in micro-lamports a compute unit: the
// percentile of recent fees, not below Floor and not above Cap.
type PriceRule struct {
	Floor, Cap uint64
	// Percentile is from 0 to 100.
	Percentile int
}

// EngineOptions configure an Engine. All fields are needed.
type EngineOptions struct {
	Store    Store
	Chain    Chain
	State    PoolState
	Pool     *shieldpool.Pool
	Payers   FeePayers
	Spending Spending
	Leaves   LeafIndex
	ProofA   *ProofAPolicy
	Observer Observer
	Log      *slog.Logger
	Now      func() time.Time
	// Worker names this process among the holders of leases.
	Worker uuid.UUID
	// Concurrency is how many submissions this process has in flight: taken up
	// and not yet landed.
	Concurrency int
	Timing      Timing
	Price       PriceRule
	// SwapPlanner carries swaps on, SwapConcurrency of them
	// at once, with a capacity of their own. Nil when this relay has no router: another
	// process's second legs are then not claimed.
	SwapPlanner     SwapPlanner
	SwapConcurrency int
	// Table is the relay's own lookup table; nil for legacy transactions.
	Table *shieldpool.LookupTable
}

// Engine advances submissions to their outcome.
type Engine struct {
	EngineOptions
	compute  *computeLimits
	price    *priceCache
	tracker  *tracker
	recorder *recorder
	capacity capacity
	// executionCapacity are the places of swaps' second legs, and executionsDue signals one that is due.
	executionCapacity capacity
	executionsDue     chan struct{}
	paused            queuePause
	failedNotes       failedNotes
	// outage is about transactions that no endpoint takes.
	outage sendOutage
	// leaseHealth is since when this process's leases have not lapsed.
	leaseHealth leaseHealth
	// mayClaimMore says that there was more to claim than there were places.
	mayClaimMore atomic.Bool
	// orphaned are leases that the last audit did not know of.
	orphaned map[Lease]bool
	// claimSoon brings the next claim forward; othersNeeded has other processes told.
	claimSoon, othersNeeded chan struct{}
	// highestTreeSlot is the newest slot at which the tree was seen to change; treeSlotChanged signals it.
	highestTreeSlot atomic.Uint64
	treeSlotChanged chan struct{}
	// stopping ends when nothing new is to be taken up; running steps then have
	// half a lease to finish.
	stopping context.Context
	stop     context.CancelFunc
	steps    sync.WaitGroup
}

// check tells what is missing or out of bounds.
func (o *EngineOptions) check() error {
	if o.Store == nil || o.Chain == nil || o.State == nil || o.Pool == nil || o.Payers == nil || o.Spending == nil || o.Leaves == nil ||
		o.ProofA == nil || o.Observer == nil || o.Log == nil || o.Now == nil || o.Worker == uuid.Nil {
		return errors.New("the submission engine needs every one of its options")
	}
	if o.Concurrency < 1 {
		return fmt.Errorf("the submission engine's concurrency is %d: expected at least 1", o.Concurrency)
	}
	if o.SwapPlanner != nil && o.SwapConcurrency < 1 {
		return fmt.Errorf("the submission engine's settlements are %d at once: expected at least 1", o.SwapConcurrency)
	}
	return nil
}

// NewEngine checks the options.
func NewEngine(o EngineOptions) (*Engine, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if t := o.Timing; t.Lease <= 0 || t.Poll <= 0 || t.Sweep <= 0 || t.Backoff <= 0 || t.BackoffCap < t.Backoff || t.Hold <= 0 {
		return nil, errors.New("the submission engine's timing has to be above zero")
	}
	e := &Engine{
		EngineOptions: o, outage: sendOutage{minDuration: o.Timing.Lease}, compute: newComputeLimits(), price: newPriceCache(o.Price, o.Now),
		capacity: capacity{limit: o.Concurrency}, executionCapacity: capacity{limit: o.SwapConcurrency}, executionsDue: make(chan struct{}, 1), claimSoon: make(chan struct{}, 1), othersNeeded: make(chan struct{}, 1), treeSlotChanged: make(chan struct{}, 1),
	}
	e.stopping, e.stop = context.WithCancel(context.Background())
	e.tracker, e.recorder = newTracker(e), newRecorder(e)
	return e, nil
}

// ReserveCapacity gives a place for a submission about to be accepted, so that it is
// this process's from its commit on. It is false when there is none, or when
// others wait for one: the row then waits with them, and the most urgent goes
// first. Start or CancelReservation ends it.
func (e *Engine) ReserveCapacity() bool {
	return e.stopping.Err() == nil && e.paused.reason() == "" && !e.mayClaimMore.Load() && e.capacity.acquire(1) == 1
}

// CancelReservation gives a reserved place back.
func (e *Engine) CancelReservation() { e.capacity.release() }

// Start works on a submission that was accepted into a reserved place. The
// request that brought it may end before its first step does.
func (e *Engine) Start(ctx context.Context, s *Submission) {
	e.start(context.WithoutCancel(ctx), &Claimed{Submission: s, fresh: true, accepted: e.Now()})
}

// ClaimSoon tells that something may be due: looking for it is brought forward.
func (e *Engine) ClaimSoon() { signal(e.claimSoon) }

// NotifyOthers tells that a submission was accepted that this process had no place
// for: all processes are told.
func (e *Engine) NotifyOthers() { signal(e.othersNeeded) }

// PollSoon brings the next look at the chain forward.
func (e *Engine) PollSoon() { signal(e.tracker.pollSoon) }

// ObserveTreeSlot is told the slot of every new state of the pool's tree, and tells the
// fleet: a process whose node is behind then knows that it is.
func (e *Engine) ObserveTreeSlot(slot uint64) {
	e.highestTreeSlot.Store(slot)
	signal(e.treeSlotChanged)
}

// observeLandingSlot tells of a slot in which a transaction of the pool landed: the tree
// changed there, even if no node that is read has come so far. Without that word
// a process whose nodes are all behind would call roots stale that are too new.
func (e *Engine) observeLandingSlot(slot uint64) {
	for {
		seen := e.highestTreeSlot.Load()
		if slot <= seen {
			return
		}
		if e.highestTreeSlot.CompareAndSwap(seen, slot) {
			signal(e.treeSlotChanged)
			return
		}
	}
}

// signal leaves a mark that a loop finds; one is enough.
func signal(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// InProgress is how many submissions this process holds: in flight, and landed
// ones that are watched until finalized.
func (e *Engine) InProgress() (inFlight, watched int) {
	return e.capacity.inUse() + e.executionCapacity.inUse(), e.tracker.landedCount()
}

// PausedBy is why this process takes nothing up; "" when it works.
func (e *Engine) PausedBy() string { return e.paused.reason() }

// start runs the first step of a submission whose lease and place are held.
func (e *Engine) start(ctx context.Context, c *Claimed) {
	w, twice := e.tracker.add(c)
	e.steps.Go(func() {
		ctx, cancel := e.stepContext(ctx)
		defer cancel()
		if twice { // released, it comes again under an epoch that the step which still runs does not hold
			e.deferSubmission(ctx, w, ErrLeaseLost)
			return
		}
		e.step(ctx, w)
	})
}

// step acts on a submission whose lease is held, and lets go of it on the way
// out unless it is to be followed. A step that panics must not take the
// process with it, and with that every other submission.
func (e *Engine) step(ctx context.Context, w *entry) {
	defer e.tracker.stepEnded(w)
	defer func() {
		if p := recover(); p != nil {
			e.Observer.Attempt("panic")
			e.deferSubmission(ctx, w, fmt.Errorf("step panicked: %v", redact(p)))
		}
	}()
	follow, err := e.advance(ctx, w)
	switch {
	case err != nil:
		e.deferSubmission(ctx, w, err)
	case follow:
		e.tracker.track(w)
	default:
		e.tracker.drop(w)
	}
}

// redact keeps of a panic what holds nothing of a request: an error of the
// runtime, or the type alone.
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

// deferSubmission gives the lease back, to come again after a pause.
func (e *Engine) deferSubmission(ctx context.Context, w *entry, cause error) {
	defer e.tracker.drop(w)
	if errors.Is(cause, ErrLeaseLost) {
		e.Observer.Lease("lost", 1)
		e.Log.DebugContext(ctx, "lease lost to another process", "request_id", w.c.ID)
		e.release(ctx, w, 0, "") // unless nobody did: the process may only have been late to beat
		return
	}
	reason, level, delay := "", slog.LevelInfo, e.backoff(w.c.Tries)
	if wait := (*Deferral)(nil); errors.As(cause, &wait) {
		reason, delay = wait.Reason, wait.Delay
		if w.c.Hold == wait.Reason {
			level = slog.LevelDebug
		}
		time.AfterFunc(delay, func() { signal(e.executionsDue) })
	}
	if h := (*heldError)(nil); errors.As(cause, &h) {
		reason, level, delay = h.reason, slog.LevelDebug, cmp.Or(h.retryAfter, e.Timing.Hold)
		e.Observer.Attempt("held")
		if w.c.Hold != h.reason {
			level = slog.LevelWarn
		}
		e.pauseFor(ctx, h)
	}
	e.Log.Log(ctx, level, "submission deferred", "request_id", w.c.requestID(), "delay", delay, "held", reason, "error", cause)
	e.release(ctx, w, delay, reason)
}

// release gives the lease back.
func (e *Engine) release(ctx context.Context, w *entry, delay time.Duration, reason string) {
	// A step that was cancelled still has to give its lease back, while there is time for it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.Timing.Lease/2)
	defer cancel()
	if err := e.Store.Release(ctx, w.c.Lease(), delay, reason); err != nil && !errors.Is(err, ErrLeaseLost) {
		e.Log.WarnContext(ctx, "lease not released; the audit will find it", "request_id", w.c.ID, "error", err)
	}
}

func (e *Engine) backoff(tries int) time.Duration {
	d := e.Timing.Backoff
	for range tries {
		if d *= 2; d >= e.Timing.BackoffCap {
			return e.Timing.BackoffCap
		}
	}
	return d
}

// fail ends a submission for good.
func (e *Engine) fail(ctx context.Context, c *Claimed, why *refusal.Refusal) error {
	if c.RolledBack {
		why = why.With("rolled_back", true)
	}
	// Noted before a client can see the outcome and post again. When the write fails
	// and is tried again, the notes only rest longer.
	_, paid := retryAt(c.Dead)
	e.failedNotes.add(c.Call.Inputs, paid, e.Now())
	if err := e.Store.Fail(ctx, c.Lease(), why); err != nil {
		return err
	}
	e.Observer.Outcome(c.Kind, string(why.Code))
	e.Log.InfoContext(ctx, "submission failed", "request_id", c.ID, "code", why.Code, "error", why.Cause)
	return nil
}
