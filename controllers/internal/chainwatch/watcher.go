// Package chainwatch reads the chain for every RelayPool outside of the reconcile
// loop. One check reads the pool's accounts and the fee payers' balances in one call.
// The package keeps the last good reading of each RelayPool and the reading's time. It sends
// an event for the RelayPool only when something that the status shows has changed.
package chainwatch

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/poolcheck"
)

const (
	defaultTimeout = 5 * time.Second
	defaultWorkers = 16
)

// Options make a Watcher. HTTP, Now and Random are required.
type Options struct {
	// HTTP calls the endpoints; rpc.NewHTTPClient makes a suitable client.
	HTTP *http.Client
	Now  func() time.Time
	// Random returns numbers that are at least 0 and less than 1.
	Random func() float64
	// Log receives changes of pools' states. The zero Logger discards them.
	Log logr.Logger
	// Timeout bounds the calls to one endpoint in one check. 0 is 5 s.
	Timeout time.Duration
	// Workers limits the concurrent checks in each of two lanes: RelayPools whose last
	// check was answered, and all others. So checks that wait for dead endpoints delay
	// only each other. 0 is 16.
	Workers int
}

// Watcher reads the chain for every RelayPool that Set gave it. Its methods may
// be called concurrently, and none waits for the chain.
type Watcher struct {
	o      Options
	dial   func(url, ca string, finalized bool) (poolcheck.Reader, error)
	events chan event.GenericEvent
	// wake makes Start look for checks that are due. reportSoon makes sendEvents look at
	// changedPools.
	wake, reportSoon chan struct{}

	mu           sync.Mutex
	pools        map[types.NamespacedName]*pool
	running      [2]int // checks under way, by lane
	changedPools []types.NamespacedName
	started      bool
	closed       bool
	cancel       context.CancelFunc
	stopped      chan struct{}
}

// pool is the watcher's state of one RelayPool.
type pool struct {
	query   *Query
	checker *checker
	reading Reading
	// history has each payer's balance history.
	history map[solana.PublicKey]*balanceHistory
	due     time.Time
	busy    bool
	// failures counts failed checks in a row. unconfirmed is true if the last answered check was
	// the first that no longer found the pool initialised. Another check has to confirm this.
	failures     int
	failedAt     time.Time
	unconfirmed  bool
	lastReported *excerpt
}

// New makes a watcher. It reads nothing before Start.
func New(o Options) (*Watcher, error) {
	switch {
	case o.HTTP == nil || o.Now == nil || o.Random == nil:
		return nil, errors.New("chain watcher needs an HTTP client, a clock and random numbers")
	case o.Timeout < 0 || o.Workers < 0:
		return nil, fmt.Errorf("chain watcher's timeout is %s and its workers are %d: expected positive values, or 0 for the defaults, %s and %d", o.Timeout, o.Workers, defaultTimeout, defaultWorkers)
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.Workers == 0 {
		o.Workers = defaultWorkers
	}
	w := &Watcher{
		o: o, events: make(chan event.GenericEvent), wake: make(chan struct{}, 1), reportSoon: make(chan struct{}, 1),
		pools: map[types.NamespacedName]*pool{}, stopped: make(chan struct{}),
	}
	w.dial = func(url, ca string, finalized bool) (poolcheck.Reader, error) {
		return dial(o.HTTP, url, ca, finalized, o.Now, o.Timeout)
	}
	return w, nil
}

// Start reads until ctx ends or Close is called, and returns once all checks have
// ended. It implements manager.Runnable, and only the leader runs it. A Watcher can be started
// only once.
func (w *Watcher) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.mu.Lock()
	if w.started || w.closed {
		w.mu.Unlock()
		return errors.New("chain watcher was started or closed before: it runs once")
	}
	w.started, w.cancel = true, cancel
	w.mu.Unlock()
	defer close(w.stopped)

	var wg sync.WaitGroup
	wg.Go(func() { w.sendEvents(ctx) })
	for {
		wait := w.startDue(ctx, &wg)
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			wg.Wait()
			return nil
		case <-w.wake:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// Close ends Start and waits for it.
func (w *Watcher) Close() {
	w.mu.Lock()
	w.closed = true
	started, cancel := w.started, w.cancel
	w.mu.Unlock()
	if !started {
		return
	}
	cancel()
	<-w.stopped
}

// Set makes the watcher read the chain for a RelayPool: at once when the query is new or
// has changed, else when the next check is due. If the target has changed, Set drops the
// report. If the chain has changed, Set also drops the balances. It always drops the balances
// of payers that are no longer in the query.
func (w *Watcher) Set(key types.NamespacedName, q Query) {
	if q.Interval <= 0 {
		q.Interval = defaultInterval
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.pools[key]
	if p != nil && sameQuery(p.query, &q) {
		return
	}
	// A check that is under way keeps the query and the checker that it began with. The
	// result of that check is dropped, because w.pools has a new entry by then.
	next := &pool{
		query: &q, reading: Reading{Target: q.Target}, history: map[solana.PublicKey]*balanceHistory{}, due: w.o.Now(),
		checker: &checker{dial: w.dial, now: w.o.Now, timeout: w.o.Timeout, seed: maphash.MakeSeed(), endpoints: map[string]*endpointState{}},
	}
	if p != nil {
		next.inheritFrom(p)
	}
	w.pools[key] = next
	signal(w.wake)
}

// inheritFrom copies what is still valid for the new query.
func (p *pool) inheritFrom(old *pool) {
	valid := old.reading.ForTarget(p.query.Target)
	p.reading.Payers = map[solana.PublicKey]Payer{}
	for _, key := range p.query.Payers {
		if payer, ok := valid.Payers[key]; ok {
			p.reading.Payers[key] = payer
			p.history[key] = old.history[key].clone()
		}
	}
	// A new target is reported again, regardless of what was reported for the old one.
	if sameTarget(old.query.Target, p.query.Target) {
		p.lastReported = old.lastReported
		p.reading.Report, p.reading.At = valid.Report, valid.At
		p.reading.UnavailableSince, p.reading.Cause = valid.UnavailableSince, valid.Cause
		p.failures, p.failedAt = old.failures, old.failedAt
	}
}

// Forget stops reading for a RelayPool.
func (w *Watcher) Forget(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pools, key)
}

// Reading returns the reading of a RelayPool; ok is false if the watcher does not read the
// chain for it.
func (w *Watcher) Reading(key types.NamespacedName) (r Reading, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.pools[key]
	if p == nil {
		return Reading{}, false
	}
	return p.reading, true
}

// Events returns a channel with an event for a RelayPool whenever something that its
// status shows may have changed. Changes before an event is received share that event.
func (w *Watcher) Events() <-chan event.GenericEvent { return w.events }

// signal wakes the receiver of c, unless a signal waits already.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run makes one check and keeps its result.
func (w *Watcher) run(ctx context.Context, key types.NamespacedName, p *pool, lane int) {
	a := p.checker.check(ctx, p.query)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running[lane]--
	p.busy = false
	signal(w.wake)
	if w.pools[key] != p || ctx.Err() != nil {
		return
	}
	now := w.o.Now()
	p.keepReading(a, now)
	p.due = now.Add(w.pause(p))
	next := excerptOf(&p.reading)
	if p.lastReported != nil && !p.lastReported.differs(&next, p.query.Thresholds) {
		return
	}
	if p.lastReported == nil || p.lastReported.state != next.state || p.lastReported.reason != next.reason {
		w.o.Log.Info("pool state changed", "relaypool", key, "state", string(next.state), "reason", string(next.reason), "message", next.message)
	}
	p.lastReported = &next
	if !slices.Contains(w.changedPools, key) {
		w.changedPools = append(w.changedPools, key)
	}
	signal(w.reportSoon)
}

// sendEvents sends an event for every RelayPool in changedPools.
func (w *Watcher) sendEvents(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.reportSoon:
		}
		for {
			key, ok := w.nextChanged()
			if !ok {
				break
			}
			changed := event.GenericEvent{Object: &v1alpha1.RelayPool{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}}
			select {
			case <-ctx.Done():
				return
			case w.events <- changed:
			}
		}
	}
}

func (w *Watcher) nextChanged() (key types.NamespacedName, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.changedPools) == 0 {
		return key, false
	}
	key = w.changedPools[0]
	w.changedPools = slices.Delete(w.changedPools, 0, 1)
	return key, true
}
