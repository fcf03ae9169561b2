// Package chain is the Solana chain as several RPC endpoints report it: which of them
// is asked, what two of them have to agree on, and the pool's tree on top of it.
package chain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gagliardetto/solana-go"
	"golang.org/x/sync/singleflight"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/rpc"
)

// Role is what an endpoint is used for.
type Role string

// The roles.
const (
	// RoleRead answers what the relay asks all the time.
	RoleRead Role = "read"
	// RoleSubmit takes transactions.
	RoleSubmit Role = "submit"
	// RoleArchive keeps a long history, and is asked first for what is in it.
	RoleArchive Role = "archive"
)

// NoWebSocket as an endpoint's WebSocketURL keeps the relay from opening one there.
const NoWebSocket = "none"

const (
	defaultMaxLag = 10
	defaultProbe  = 5 * time.Second
)

// Endpoint configures one RPC endpoint. Its URLs hold credentials, so no
// formatting of it shows them.
type Endpoint struct {
	// Name is what errors, logs and metrics call it: 1 to 40 letters, digits,
	// dots, dashes and underscores, unlike the others'.
	Name string
	// URL is http or https. WebSocketURL is ws or wss; empty for the URL's own
	// host and path, NoWebSocket for none.
	URL          string `json:"-"`
	WebSocketURL string `json:"-"`
	// Roles are what it is used for; none stands for read and submit.
	Roles []Role
	// RequestsPerSecond bounds what is asked of it; 0 for no bound.
	RequestsPerSecond float64
}

// String gives name and roles.
func (e Endpoint) String() string { return fmt.Sprintf("endpoint %s %v", e.Name, e.Roles) }

// GoString is String.
func (e Endpoint) GoString() string { return e.String() }

// LogValue gives name and roles.
func (e Endpoint) LogValue() slog.Value { return slog.StringValue(e.String()) }

// EndpointsOptions configure Endpoints. Endpoints, Now, Rand and Log are
// required.
type EndpointsOptions struct {
	// Endpoints are in the order of preference among equals. At least one has
	// the role read and one submit.
	Endpoints []Endpoint
	// Genesis is the hash of the only chain that is used; zero for that of the
	// first endpoint that answers, in their order.
	Genesis solana.Hash
	// HTTP makes the client of one endpoint, so that a slow one does not exhaust the
	// connections of others; nil stands for rpc.NewHTTPClient.
	HTTP func() *http.Client
	// Now is the clock; Rand gives numbers from 0 to below 1 for jitter.
	Now  func() time.Time
	Rand func() float64
	Log  *slog.Logger
	// Observer receives events of the endpoints. Nil for none.
	Observer Observer
	// Timeout bounds one call as in rpc.Options; 0 is 5 s. A read that another
	// endpoint could answer gets less.
	Timeout time.Duration
	// MaxLag is by how many slots an endpoint may be behind the best; beyond that it is
	// asked last, and its blockhash is refused; 0 is 10, 4 seconds.
	MaxLag uint64
	// Probe is how long an endpoint may be silent before Run asks it for its slot; 0 is 5 s.
	Probe time.Duration
}

// Observer receives events of the endpoints, under their names. Its methods must not block.
type Observer interface {
	// Called records a call: its RPC method, its class ("ok", "refused",
	// "preflight" or a kind of onchain.Unavailable) and its duration.
	Called(endpoint, method, class string, took time.Duration)
	// BreakerChanged reports the new state: closed, half_open or open.
	BreakerChanged(endpoint string, state outbound.State)
	// RebroadcastSkipped counts a rebroadcast for which the budget had no request.
	RebroadcastSkipped(endpoint string)
	// Notified counts a notification of a WebSocket.
	Notified(endpoint string)
	// Contradicted counts answers of an endpoint that others contradict. Which of
	// them is wrong is not known.
	Contradicted(endpoint string)
}

// EndpointStatus is how an endpoint is doing.
type EndpointStatus struct {
	Name    string
	Roles   []Role
	Breaker outbound.State
	// Foreign is true when the endpoint serves another chain; then it is not used.
	Foreign bool
	// Slot is the slot that it last reported, at SlotAt (zero: never), and Lag by how
	// many slots it was behind the best then.
	Slot, Lag uint64
	SlotAt    time.Time
	// Subscribed is true while the relay listens to its notifications.
	Subscribed bool
	// Latency is the average duration of its slowest method; 0 when no call was made.
	Latency time.Duration
	// Contradictions counts its answers that others contradict, the last of them at
	// ContradictedAt. ContradictedBy names the other endpoint; it is empty for a slot
	// that no other endpoint comes near.
	Contradictions uint64
	ContradictedAt time.Time
	ContradictedBy string
	// LastError is the kind of the last call that failed, at LastErrorAt; empty
	// when none did.
	LastError   string
	LastErrorAt time.Time
}

// Endpoints is the chain as several RPC endpoints report it. Their health follows from
// the answers to their calls alone. A read goes to the best endpoint that has the role and
// a closed breaker, and from there to the next; a send goes to all. Safe for concurrent use.
//
// Errors of calls are as rpc.Client's, and name the endpoints by their names.
type Endpoints struct {
	all      []*endpoint
	now      func() time.Time
	rand     func() float64
	log      *slog.Logger
	observer Observer
	timeout  time.Duration
	maxLag   uint64
	probe    time.Duration

	slots   *slotAgreement
	turned  signal // a breaker changed its state
	hashes  blockhashes
	heights heights
	sends   inFlight

	// background is the context of work for all callers rather than one; Close ends it.
	background context.Context
	stop       context.CancelFunc
	working    inFlight

	mu      sync.Mutex
	genesis solana.Hash // zero until it is known
}

// endpoint is one RPC endpoint.
type endpoint struct {
	name    string
	index   int
	roles   []Role
	http    *http.Client
	clients map[outbound.Urgency]*rpc.Client
	// socket is nil without one; a function, so that formatting never shows it.
	socket  func() *url.URL
	breaker *outbound.Breaker
	budget  *outbound.Budget
	meter   *latencyMeter
	asking  singleflight.Group

	mu        sync.Mutex
	chain     identity
	lastError string
	errorAt   time.Time
	checkedAt time.Time
	// subscribed says that notifications are listened to.
	subscribed bool
	// What other endpoints contradict.
	contradictions uint64
	contradictedAt time.Time
	contradictedBy string
}

// String names them. Without it, formatting would read fields that calls change.
func (e *Endpoints) String() string {
	names := make([]string, len(e.all))
	for i, ep := range e.all {
		names[i] = ep.name
	}
	return "RPC endpoints " + strings.Join(names, ", ")
}

// GoString is String.
func (e *Endpoints) GoString() string { return e.String() }

var endpointName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,40}$`)

// NewEndpoints makes them. It makes no call: an endpoint that is down when the
// relay starts may be up later.
func NewEndpoints(o EndpointsOptions) (*Endpoints, error) {
	if o.Now == nil || o.Rand == nil || o.Log == nil {
		return nil, errors.New("RPC endpoints need a clock, a source of random numbers and a log")
	}
	if o.Probe < 0 {
		return nil, fmt.Errorf("interval of probes is %s: expected a positive duration, or 0 for %s", o.Probe, defaultProbe)
	}
	e := &Endpoints{
		now: o.Now, rand: o.Rand, log: o.Log, observer: o.Observer, genesis: o.Genesis,
		timeout: cmp.Or(o.Timeout, rpc.DefaultTimeout), maxLag: cmp.Or(o.MaxLag, defaultMaxLag), probe: cmp.Or(o.Probe, defaultProbe),
		turned: newSignal(),
	}
	if o.HTTP == nil {
		o.HTTP = rpc.NewHTTPClient
	}
	e.slots = newSlotAgreement(len(o.Endpoints), e.maxLag)
	if e.observer == nil {
		e.observer = noObserver{}
	}
	for i, c := range o.Endpoints {
		if !endpointName.MatchString(c.Name) {
			// The name is not repeated, because it may be a URL in the wrong field.
			return nil, fmt.Errorf("RPC endpoint %d has a name of %d characters: expected 1 to 40 letters, digits, dots, dashes and underscores", i+1, len(c.Name))
		}
		if slices.ContainsFunc(e.all, func(other *endpoint) bool { return other.name == c.Name }) {
			return nil, fmt.Errorf("RPC endpoint %d is named %s as one before it: give it a name of its own", i+1, c.Name)
		}
		ep, err := e.endpoint(i, c, o.HTTP())
		if err != nil {
			return nil, fmt.Errorf("RPC endpoint %s: %w", c.Name, err)
		}
		e.all = append(e.all, ep)
	}
	for _, role := range []Role{RoleRead, RoleSubmit} {
		if len(e.having(role)) == 0 {
			return nil, fmt.Errorf("no RPC endpoint has the role %s: expected at least one among the %d", role, len(e.all))
		}
	}
	e.hashes.first = make([]firstSeen, len(e.all))
	e.heights.slack, e.heights.reports = e.maxLag, make([]heightReport, len(e.all))
	e.background, e.stop = context.WithCancel(context.Background())
	return e, nil
}

func (e *Endpoints) endpoint(i int, c Endpoint, transport *http.Client) (*endpoint, error) {
	ep := &endpoint{name: c.Name, index: i, roles: slices.Clone(c.Roles), http: transport, clients: map[outbound.Urgency]*rpc.Client{}, meter: newLatencyMeter()}
	if len(ep.roles) == 0 {
		ep.roles = []Role{RoleRead, RoleSubmit}
	}
	for _, role := range ep.roles {
		if role != RoleRead && role != RoleSubmit && role != RoleArchive {
			return nil, fmt.Errorf("role of %d characters is not known: expected %s, %s or %s", len(role), RoleRead, RoleSubmit, RoleArchive)
		}
	}
	client, err := rpc.New(rpc.Options{URL: c.URL, HTTP: transport, Now: e.now, Timeout: e.timeout, Observe: func(method, class string, took time.Duration) {
		e.observer.Called(c.Name, method, class, took)
	}})
	if err != nil {
		return nil, err
	}
	if ep.socket, err = socketOf(c.URL, c.WebSocketURL); err != nil {
		return nil, err
	}
	if ep.budget, err = outbound.NewBudget(c.RequestsPerSecond, e.now); err != nil {
		return nil, err
	}
	ep.breaker, err = outbound.NewBreaker(outbound.BreakerOptions{Now: e.now, Rand: e.rand, Changed: func(from, to outbound.State) { e.breakerChanged(ep, from, to) }})
	if err != nil {
		return nil, err
	}
	// A rebroadcast does not wait: another comes soon.
	for u, most := range map[outbound.Urgency]time.Duration{outbound.FirstSend: e.timeout, outbound.Read: e.timeout, outbound.Rebroadcast: 0, outbound.Upkeep: e.timeout} {
		ep.clients[u] = client.Gated(func(ctx context.Context) error { return ep.budget.Wait(ctx, u, most) })
	}
	return ep, nil
}

func (ep *endpoint) has(role Role) bool { return slices.Contains(ep.roles, role) }

// fit are the endpoints that have one of the roles and serve the relay's chain.
func (e *Endpoints) fit(roles ...Role) (out []*endpoint) {
	for _, ep := range e.all {
		if slices.ContainsFunc(roles, ep.has) && !ep.isForeign() {
			out = append(out, ep)
		}
	}
	return out
}

func (ep *endpoint) only(role Role) bool {
	return !slices.ContainsFunc(ep.roles, func(r Role) bool { return r != role })
}

func (e *Endpoints) having(role Role) (out []*endpoint) {
	for _, ep := range e.all {
		if ep.has(role) {
			out = append(out, ep)
		}
	}
	return out
}

func (e *Endpoints) breakerChanged(ep *endpoint, from, to outbound.State) {
	switch {
	case to == outbound.Open && from == outbound.Closed:
		ep.mu.Lock()
		class := ep.lastError
		ep.mu.Unlock()
		e.log.Warn("rpc endpoint breaker opened", "endpoint", ep.name, "last_error", class)
	case to == outbound.Closed:
		e.log.Info("rpc endpoint breaker closed", "endpoint", ep.name)
	}
	e.observer.BreakerChanged(ep.name, to)
	e.turned.raise()
}

// Corroborated reports whether more than one endpoint, or the only one there is, confirms
// that the chain has reached a slot.
func (e *Endpoints) Corroborated(slot uint64) bool { return e.slots.Corroborated(slot, e.now()) }

// Passed reports whether the chain, by what two endpoints agreed on, had long passed the slot
// at the time. As long as they have not agreed, any endpoint's word is enough.
func (e *Endpoints) Passed(slot uint64, at time.Time) bool { return e.slots.Passed(slot, at) }

// Status reports how every endpoint is doing, in their configured order.
func (e *Endpoints) Status() []EndpointStatus {
	out := make([]EndpointStatus, len(e.all))
	for i, ep := range e.all {
		s := EndpointStatus{Name: ep.name, Roles: slices.Clone(ep.roles), Breaker: ep.breaker.State(), Slot: e.slots.Slot(i), Latency: ep.meter.Slowest()}
		s.Lag, s.SlotAt = e.slots.Lag(i)
		ep.mu.Lock()
		s.Foreign, s.LastError, s.LastErrorAt = ep.chain.foreign, ep.lastError, ep.errorAt
		s.Subscribed = ep.subscribed
		s.Contradictions, s.ContradictedAt, s.ContradictedBy = ep.contradictions, ep.contradictedAt, ep.contradictedBy
		ep.mu.Unlock()
		out[i] = s
	}
	return out
}

// Close ends background work and closes idle connections. Sends
// under way go on: call Flush before.
func (e *Endpoints) Close() {
	e.stop()
	// It cannot fail: the context never ends.
	_ = e.working.wait(context.Background())
	for _, ep := range e.all {
		ep.http.CloseIdleConnections()
	}
}

// noObserver observes nothing.
type noObserver struct{}

func (noObserver) Called(string, string, string, time.Duration) {}
func (noObserver) BreakerChanged(string, outbound.State)        {}
func (noObserver) RebroadcastSkipped(string)                    {}
func (noObserver) Notified(string)                              {}
func (noObserver) Contradicted(string)                          {}
