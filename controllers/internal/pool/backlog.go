package pool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/contract"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BacklogReader asks a relay for its fleet's queue.
type BacklogReader interface {
	// Backlog asks the pod with that IP address. The time of the answer is the
	// caller's to set.
	Backlog(ctx context.Context, ip string) (Backlog, error)
}

// HTTPBacklog asks the operations port of pods.
type HTTPBacklog struct {
	// Client of HTTP; its transport should keep no idle connections, for pods go.
	Client *http.Client
}

// maxAnswer bounds a pod's answer, in bytes.
const maxAnswer = 64 << 10

// Backlog implements BacklogReader.
func (h HTTPBacklog) Backlog(ctx context.Context, ip string) (Backlog, error) {
	url := "http://" + net.JoinHostPort(ip, strconv.Itoa(contract.OperationsPort)) + contract.BacklogPath
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return Backlog{}, fmt.Errorf("ask for the backlog: %w", err)
	}
	response, err := h.Client.Do(request)
	if err != nil {
		return Backlog{}, fmt.Errorf("ask for the backlog: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return Backlog{}, fmt.Errorf("ask for the backlog: expected status 200, received %d", response.StatusCode)
	}
	var answer struct {
		Due  *int64           `json:"due_count"`
		Held map[string]int64 `json:"held"`
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&answer); err != nil {
		return Backlog{}, fmt.Errorf("read the backlog: %w", err)
	}
	if answer.Due == nil || *answer.Due < 0 {
		return Backlog{}, errors.New("read the backlog: expected due_count, a number of 0 or more, received none")
	}
	return Backlog{Due: *answer.Due, Held: answer.Held}, nil
}

const (
	backlogInterval = 30 * time.Second
	// backlogPatience bounds one question, and backlogPause how seldom pods are
	// asked that never answer: the operator may run outside of their network.
	backlogPatience = 2 * time.Second
	backlogPause    = 10 * time.Minute
	backlogWorkers  = 8
	backlogQueue    = 1024
)

// Poller keeps the last reading of each RelayPool's backlog. It asks beside the
// passes, a few pods at a time, so that pods that do not answer delay nobody.
type Poller struct {
	reader BacklogReader
	now    func() time.Time
	events chan event.GenericEvent
	queue  chan question

	mutex sync.Mutex
	pools map[types.NamespacedName]*polled
}

type question struct {
	key types.NamespacedName
	ip  string
}

type polled struct {
	last     Backlog
	due      time.Time
	asking   bool
	failures int
}

// NewPoller refuses to be made without a reader and a clock.
func NewPoller(reader BacklogReader, now func() time.Time) (*Poller, error) {
	if reader == nil || now == nil {
		return nil, errors.New("make poller of backlogs: a reader and a clock are required")
	}
	return &Poller{
		reader: reader, now: now, events: make(chan event.GenericEvent), queue: make(chan question, backlogQueue),
		pools: map[types.NamespacedName]*polled{},
	}, nil
}

// Start asks until ctx ends. It is a manager.Runnable, for the leader alone.
func (p *Poller) Start(ctx context.Context) error {
	var workers sync.WaitGroup
	for range backlogWorkers {
		workers.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case q := <-p.queue:
					p.ask(ctx, q)
				}
			}
		})
	}
	workers.Wait()
	return nil
}

// Events tell of RelayPools whose backlog has moved far enough to be shown.
func (p *Poller) Events() <-chan event.GenericEvent { return p.events }

// Backlog gives the last reading, and has one of the pods asked when the next is
// due. It does not wait. ips are those of pods that are ready.
func (p *Poller) Backlog(key types.NamespacedName, ips []string) Backlog {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	state := p.pools[key]
	if state == nil {
		state = &polled{}
		p.pools[key] = state
	}
	if len(ips) > 0 && !state.asking && !p.now().Before(state.due) {
		select {
		// After a failure another pod is asked.
		case p.queue <- question{key, ips[state.failures%len(ips)]}:
			state.asking = true
		default: // so many wait that this one may as well wait for its next pass
		}
	}
	return state.last
}

// Forget drops what is known of a RelayPool that is gone.
func (p *Poller) Forget(key types.NamespacedName) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.pools, key)
}

func (p *Poller) ask(ctx context.Context, q question) {
	asking, cancel := context.WithTimeout(ctx, backlogPatience)
	defer cancel()
	reading, err := p.reader.Backlog(asking, q.ip)
	if !p.keep(q.key, reading, err) {
		return
	}
	told := &v1alpha1.RelayPool{ObjectMeta: metav1.ObjectMeta{Namespace: q.key.Namespace, Name: q.key.Name}}
	select {
	case p.events <- event.GenericEvent{Object: told}:
	case <-ctx.Done():
	}
}

// keep takes a reading up, and tells whether it is worth a pass.
func (p *Poller) keep(key types.NamespacedName, reading Backlog, err error) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	state := p.pools[key]
	if state == nil {
		return false // forgotten meanwhile
	}
	state.asking = false
	if err != nil {
		// Unknown is not zero: the last reading stays, and grows older.
		state.due = p.now().Add(min(backlogInterval<<min(state.failures, 10), backlogPause))
		state.failures++
		return false
	}
	state.failures, state.due = 0, p.now().Add(backlogInterval)
	reading.At = p.now()
	news := state.last.At.IsZero() || backlogMoved(state.last.Due, reading.Due) || (state.last.held() == 0) != (reading.held() == 0)
	state.last = reading
	return news
}
