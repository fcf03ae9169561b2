package pool

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

const (
	// backlogInterval is the time between polls of a fleet whose backlog is needed only for
	// the status.
	backlogInterval = 30 * time.Second
	// A reading older than maxBacklogAge does not describe the present queue. The Poller keeps
	// its last reading while it reaches no pod, so a pass checks the age of the reading.
	maxBacklogAge = 5 * time.Minute
	// backlogTimeout bounds one request. While no pod of a fleet answers, the time between
	// polls of the fleet doubles, because the operator may run outside the pods' network. Its
	// maximum is maxBacklogPause, or maxWatchedPause for a watched fleet. While pods answer
	// with an error, the time stays the same: probably the database is down, and the queue is
	// longest when the database comes back.
	backlogTimeout  = 2 * time.Second
	maxBacklogPause = 10 * time.Minute
	backlogWorkers  = 32
	backlogQueue    = 1024
	// podsPerReading is how many pods are asked before a poll counts as failed.
	podsPerReading = 3
)

// Poller keeps the last reading of each RelayPool's backlog. It polls concurrently with
// the passes, so that pods that do not answer delay no pass. A process that is not the
// leader makes no passes, and polls only the watched fleets.
type Poller struct {
	reader BacklogReader
	now    func() time.Time
	fleets client.Reader // nil: nothing is watched
	events chan event.GenericEvent
	queue  chan pollRequest
	// wake receives a value when changedPools has RelayPools that need a pass.
	wake chan struct{}

	mutex        sync.Mutex
	pools        map[types.NamespacedName]*fleetBacklog
	changedPools []types.NamespacedName
	fleetsKnown  bool // the list of watched fleets was read at least once
}

type pollRequest struct {
	key types.NamespacedName
	ips []string
}

type fleetBacklog struct {
	last     Backlog
	err      error // why the last poll failed; nil if it succeeded
	nextPoll time.Time
	polling  bool // a poll is queued or under way
	failures int  // failed polls in a row
	// watched: the fleet is polled more often, for its autoscaler. ready is the number of
	// ready pods; it is kept for watched fleets only.
	watched bool
	ready   int
}

// Reading is what is known about the backlog of a watched fleet.
type Reading struct {
	// Backlog is the last reading; its At is zero before the first.
	Backlog
	// Ready is how many pods of the fleet are ready.
	Ready int
	// Err is why the last poll failed; nil if it succeeded.
	Err error
}

// NewPoller makes a Poller. It returns an error if the reader or the clock is missing.
func NewPoller(reader BacklogReader, now func() time.Time) (*Poller, error) {
	if reader == nil || now == nil {
		return nil, errors.New("make poller of backlogs: a reader and a clock are required")
	}
	return &Poller{
		reader: reader, now: now, events: make(chan event.GenericEvent), queue: make(chan pollRequest, backlogQueue),
		wake: make(chan struct{}, 1), pools: map[types.NamespacedName]*fleetBacklog{},
	}, nil
}

// Watch makes the Poller find the watched fleets by itself, and poll them even in a process
// that makes no passes. fleets reads RelayPools and pods from the cache. Watch must be called
// before Start.
func (p *Poller) Watch(fleets client.Reader) { p.fleets = fleets }

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica
// serves its own readings.
func (*Poller) NeedLeaderElection() bool { return false }

// Start polls until ctx ends. It implements manager.Runnable.
func (p *Poller) Start(ctx context.Context) error {
	var workers sync.WaitGroup
	for range backlogWorkers {
		workers.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case q := <-p.queue:
					p.readBacklog(ctx, q)
				}
			}
		})
	}
	workers.Go(func() { p.sendEvents(ctx) })
	if p.fleets != nil {
		workers.Go(func() { p.pollFleets(ctx) })
	}
	workers.Wait()
	return nil
}

// Events returns the channel with an event for each RelayPool whose backlog has changed
// enough to be shown.
func (p *Poller) Events() <-chan event.GenericEvent { return p.events }

// sendEvents sends the events from a goroutine of its own, so that workers do not wait for a
// receiver.
func (p *Poller) sendEvents(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		}
		p.mutex.Lock()
		keys := p.changedPools
		p.changedPools = nil
		p.mutex.Unlock()
		for _, key := range keys {
			pool := &v1alpha1.RelayPool{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
			select {
			case <-ctx.Done():
				return
			case p.events <- event.GenericEvent{Object: pool}:
			}
		}
	}
}

// Backlog returns the last reading, and schedules a poll if one is due. It does not wait
// for the poll. ips are the addresses of ready pods.
func (p *Poller) Backlog(key types.NamespacedName, ips []string) Backlog {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	state := p.state(key)
	p.enqueue(key, state, ips)
	return state.last
}

// Reading returns the reading of a watched fleet. The second result is false if the fleet is
// not watched.
func (p *Poller) Reading(key types.NamespacedName) (Reading, bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	state := p.pools[key]
	if state == nil || !state.watched {
		return Reading{}, false
	}
	return state.reading(), true
}

func (s *fleetBacklog) reading() Reading { return Reading{Backlog: s.last, Ready: s.ready, Err: s.err} }

// Watched returns the reading of every watched fleet.
func (p *Poller) Watched() map[types.NamespacedName]Reading {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	out := map[types.NamespacedName]Reading{}
	for key, state := range p.pools {
		if state.watched {
			out[key] = state.reading()
		}
	}
	return out
}

// AllRead reports whether every watched fleet with a ready pod has been polled at least
// once. Until then, a new process must not replace one that has these readings.
func (p *Poller) AllRead() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, state := range p.pools {
		if state.watched && state.ready > 0 && state.last.At.IsZero() && state.err == nil {
			return false
		}
	}
	return p.fleetsKnown
}

// Forget drops the reading of a deleted RelayPool.
func (p *Poller) Forget(key types.NamespacedName) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.pools, key)
}

func (p *Poller) state(key types.NamespacedName) *fleetBacklog {
	state := p.pools[key]
	if state == nil {
		state = &fleetBacklog{}
		p.pools[key] = state
	}
	return state
}

// enqueue schedules a poll of the pods if one is due.
func (p *Poller) enqueue(key types.NamespacedName, state *fleetBacklog, ips []string) {
	if len(ips) == 0 || state.polling || p.now().Before(state.nextPoll) {
		return
	}
	// After a failure other pods are asked first.
	start := state.failures * podsPerReading % len(ips)
	ordered := slices.Concat(ips[start:], ips[:start])
	select {
	case p.queue <- pollRequest{key, ordered[:min(len(ordered), podsPerReading)]}:
		state.polling = true
	default: // the queue is full; the next call tries again
	}
}

func (p *Poller) readBacklog(ctx context.Context, q pollRequest) {
	var reading Backlog
	var err error
	for _, ip := range q.ips {
		if reading, err = p.readPod(ctx, ip); err == nil || ctx.Err() != nil {
			break
		}
	}
	if p.store(q.key, reading, err) {
		select {
		case p.wake <- struct{}{}:
		default: // a signal is pending already
		}
	}
}

func (p *Poller) readPod(ctx context.Context, ip string) (Backlog, error) {
	ctx, cancel := context.WithTimeout(ctx, backlogTimeout)
	defer cancel()
	return p.reader.Backlog(ctx, ip)
}

// store keeps the result of a poll. It reports whether the backlog changed enough for a pass
// that updates the status.
func (p *Poller) store(key types.NamespacedName, reading Backlog, err error) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	state := p.pools[key]
	if state == nil {
		return false // Forget was called meanwhile
	}
	interval, maxInterval := state.pollInterval()
	state.polling, state.err = false, err
	if err != nil {
		// A failed poll does not mean an empty queue, so the last reading is kept.
		state.failures++
		if statusError := (*StatusError)(nil); !errors.As(err, &statusError) {
			interval = min(interval<<min(state.failures-1, 10), maxInterval)
		}
		state.nextPoll = p.now().Add(interval)
		return false
	}
	state.failures, state.nextPoll = 0, p.now().Add(interval)
	reading.At = p.now()
	changed := state.last.At.IsZero() || backlogChangedEnough(state.last.Due, reading.Due) || (state.last.heldTotal() == 0) != (reading.heldTotal() == 0)
	state.last = reading
	if changed && !slices.Contains(p.changedPools, key) {
		p.changedPools = append(p.changedPools, key)
	}
	return changed
}
