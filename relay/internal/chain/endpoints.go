// Package chain reads the Solana chain from several RPC endpoints: it decides which
// endpoint is asked and what two endpoints have to agree on, and reads the pool's tree.
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
	"sync/atomic"
	"time"

	"github.com/gagliardetto/solana-go"
	"golang.org/x/sync/singleflight"

	"github.com/relaypool/relaypool/relay/cafile"
	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/rpc"
)

// Role is what an endpoint is used for.
type Role string

// The roles.
const (
	// RoleRead endpoints answer the relay's frequent reads.
	RoleRead Role = "read"
	// RoleSubmit endpoints accept transactions.
	RoleSubmit Role = "submit"
	// RoleArchive endpoints keep a long history, and are asked first for history.
	RoleArchive Role = "archive"
)

// NoWebSocket as an endpoint's WebSocketURL turns its WebSocket off.
const NoWebSocket = "none"

// Endpoint configures one RPC endpoint. The URLs may contain credentials, so formatting an Endpoint
// never shows them.
type Endpoint struct {
	// Name identifies the endpoint in errors, logs and metrics: 1 to 40 letters, digits, dots,
	// dashes and underscores, unique among the endpoints.
	Name string
	// URL is http or https. WebSocketURL is ws or wss. If WebSocketURL is empty, it is derived from
	// URL. NoWebSocket turns the WebSocket off.
	URL          string `json:"-"`
	WebSocketURL string `json:"-"`
	// CAFile is a PEM file of the only authorities that the certificates of both URLs may come
	// from. It is read again when it changes. Empty for the system's authorities.
	CAFile string
	// Roles are the endpoint's uses; none means read and submit. RoleLane stands alone.
	Roles []Role
	// RequestsPerSecond bounds the requests to the endpoint; 0 is no bound.
	RequestsPerSecond float64
}

// String returns the name and the roles.
func (e Endpoint) String() string { return fmt.Sprintf("endpoint %s %v", e.Name, e.Roles) }

// GoString returns the same as String.
func (e Endpoint) GoString() string { return e.String() }

// LogValue returns the name and the roles.
func (e Endpoint) LogValue() slog.Value { return slog.StringValue(e.String()) }

// EndpointsOptions configure Endpoints. Endpoints, Now, Rand and Log are
// required.
type EndpointsOptions struct {
	// Endpoints are in order of preference: among equally good endpoints the first is used. At
	// least one has the role read and at least one has the role submit.
	Endpoints []Endpoint
	// Genesis is the genesis hash of the relay's chain. Zero stands for the genesis hash of the
	// first endpoint, in the order of Endpoints, that reports one.
	Genesis solana.Hash
	// HTTP makes a separate client for each endpoint, so that a slow endpoint does not exhaust
	// the connections of others; nil stands for rpc.NewHTTPClient.
	HTTP func() *http.Client
	// Now is the clock. Rand returns numbers from 0 to below 1, for jitter.
	Now  func() time.Time
	Rand func() float64
	Log  *slog.Logger
	// Observer receives events of the endpoints. Nil for none.
	Observer Observer
	// Timeout bounds one call as in rpc.Options; 0 is 5 s. A read that another endpoint could
	// answer gets less time.
	Timeout time.Duration
	// MaxLag is the number of slots that an endpoint may be behind the best one. An endpoint that
	// is further behind is asked last, and its blockhash is refused. 0 means 10 slots, 2 to 4
	// seconds.
	MaxLag uint64
	// ReadOnce lets the processes of a fleet read blockhashes once for all; nil for a process alone.
	ReadOnce ReadOnce
	// Probe is the time without calls after which Run asks an endpoint for its slot; 0 is 5 s.
	Probe time.Duration
}

// Observer receives events of the endpoints, under their names. Its methods must not block.
type Observer interface {
	// RPCCalled records a call: its RPC method, its class ("ok", "refused",
	// "preflight" or a kind of onchain.Unavailable) and its duration.
	RPCCalled(endpoint, method, class string, took time.Duration)
	// BreakerChanged reports the new state: closed, half_open or open.
	BreakerChanged(endpoint string, state outbound.State)
	// RebroadcastSkipped counts a rebroadcast that was not sent, because the endpoint's request
	// budget was exhausted.
	RebroadcastSkipped(endpoint string)
	// NotificationReceived counts a WebSocket notification.
	NotificationReceived(endpoint string)
	// EndpointContradicted counts an answer that another endpoint contradicts. It is unknown which
	// of the two endpoints is wrong.
	EndpointContradicted(endpoint string)
}

// EndpointStatus is an endpoint's health.
type EndpointStatus struct {
	Name    string
	Roles   []Role
	Breaker outbound.State
	// Foreign is true when the endpoint serves another chain; it is then not used.
	Foreign bool
	// Slot is the slot that it last reported, at SlotAt (zero: never). Lag is the number of
	// slots that it was behind the best one at that time.
	Slot, Lag uint64
	SlotAt    time.Time
	// Subscribed is true while the relay listens to its notifications.
	Subscribed bool
	// Latency is the average duration of its slowest method; 0 when no call was made.
	Latency time.Duration
	// Contradictions counts its answers that others contradict, the last one at ContradictedAt.
	// ContradictedBy names the endpoint that contradicted the last one. It is empty if the answer
	// had a slot or a height that no other endpoint comes near.
	Contradictions uint64
	ContradictedAt time.Time
	ContradictedBy string
	// LastError is the kind of the last failed call, at LastErrorAt; empty when none
	// failed.
	LastError   string
	LastErrorAt time.Time
}

// Endpoints reads the chain from several RPC endpoints. Only the answers to its calls decide which
// endpoint is healthy. A read goes to the best endpoint that has a suitable role and a closed
// breaker, and on failure to the next one. A send goes to all submit endpoints. Safe for concurrent
// use.
//
// Errors of calls are as in rpc.Client, with the endpoint's name.
type Endpoints struct {
	all []*endpoint
	// lanes are the endpoints with the role lane. They are not among all: they answer no question
	// about the chain, so nothing about the chain's health follows from theirs.
	lanes    []*endpoint
	now      func() time.Time
	rand     func() float64
	log      *slog.Logger
	observer Observer
	timeout  time.Duration
	maxLag   uint64
	probe    time.Duration
	readOnce ReadOnce // may be nil

	slots         *slotAgreement
	breakerChange signal // a breaker changed its state
	hashes        blockhashes
	heights       heights
	sends         inFlight

	// background is the context of work that serves all callers; Close ends it.
	background     context.Context
	stop           context.CancelFunc
	backgroundWork inFlight

	// slotRefusedAt is when an answer was last refused for an impossible slot, in nanoseconds.
	slotRefusedAt atomic.Int64

	mu      sync.Mutex
	genesis solana.Hash // zero until it is known
	// slotSamples are the slot times from the endpoints' performance samples, in ascending order.
	slotSamples []time.Duration
}

// endpoint is one RPC endpoint.
type endpoint struct {
	name    string
	index   int
	roles   []Role
	http    *http.Client
	clients map[outbound.Urgency]*rpc.Client
	// socket returns the WebSocket URL; nil without one. It is a function, so that
	// formatting never shows the URL.
	socket  func() *url.URL
	breaker *outbound.Breaker
	budget  *outbound.Budget
	meter   *latencyMeter
	asking  singleflight.Group // shares one read of the genesis hash

	mu        sync.Mutex
	chain     identity
	lastError string
	errorAt   time.Time
	checkedAt time.Time // when the endpoint was last asked for its chain
	// subscribed is true while the endpoint sends notifications.
	subscribed bool
	// The next three fields record contradictions by other endpoints.
	contradictions uint64
	contradictedAt time.Time
	contradictedBy string
}

// String returns the endpoints' names. Without this method, formatting would read fields that calls
// change.
func (e *Endpoints) String() string {
	names := make([]string, len(e.all))
	for i, ep := range e.all {
		names[i] = ep.name
	}
	return "RPC endpoints " + strings.Join(names, ", ")
}

// GoString returns the same as String.
func (e *Endpoints) GoString() string { return e.String() }

var endpointName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,40}$`)

// NewEndpoints checks the options and makes Endpoints. It makes no RPC call, because an endpoint
// that is down at the start may come up later.
func NewEndpoints(o EndpointsOptions) (*Endpoints, error) {
	if o.Now == nil || o.Rand == nil || o.Log == nil {
		return nil, errors.New("RPC endpoints need a clock, a source of random numbers and a log")
	}
	if o.Probe < 0 {
		return nil, fmt.Errorf("interval of probes is %s: expected a positive duration, or 0 for %s", o.Probe, defaultProbe)
	}
	e := &Endpoints{
		now: o.Now, rand: o.Rand, log: o.Log, observer: o.Observer, genesis: o.Genesis,
		timeout: cmp.Or(o.Timeout, rpc.DefaultTimeout), maxLag: cmp.Or(o.MaxLag, defaultMaxLag), probe: cmp.Or(o.Probe, defaultProbe), readOnce: o.ReadOnce,
		breakerChange: newSignal(),
	}
	if o.HTTP == nil {
		o.HTTP = rpc.NewHTTPClient
	}
	if e.observer == nil {
		e.observer = noObserver{}
	}
	for i, c := range o.Endpoints {
		if !endpointName.MatchString(c.Name) {
			// The error does not repeat the name, which may be a URL in the wrong field.
			return nil, fmt.Errorf("RPC endpoint %d has a name of %d characters: expected 1 to 40 letters, digits, dots, dashes and underscores", i+1, len(c.Name))
		}
		if slices.ContainsFunc(slices.Concat(e.all, e.lanes), func(other *endpoint) bool { return other.name == c.Name }) {
			return nil, fmt.Errorf("RPC endpoint %d has the name %s of an earlier one: give each endpoint its own name", i+1, c.Name)
		}
		ep, err := e.newEndpoint(len(e.all), c, o.HTTP())
		if err != nil {
			return nil, fmt.Errorf("RPC endpoint %s: %w", c.Name, err)
		}
		if ep.has(RoleLane) {
			e.lanes = append(e.lanes, ep)
		} else {
			e.all = append(e.all, ep)
		}
	}
	e.slots = newSlotAgreement(len(e.all), e.maxLag)
	for _, role := range []Role{RoleRead, RoleSubmit} {
		if len(e.configuredWith(role)) == 0 {
			return nil, fmt.Errorf("no RPC endpoint has the role %s: expected at least one among the %d", role, len(e.all))
		}
	}
	e.hashes.newest = make([]firstSeen, len(e.all))
	e.heights.slack, e.heights.reports = e.maxLag, make([]heightReport, len(e.all))
	e.background, e.stop = context.WithCancel(context.Background())
	return e, nil
}

func (e *Endpoints) newEndpoint(i int, c Endpoint, httpClient *http.Client) (*endpoint, error) {
	ep := &endpoint{name: c.Name, index: i, roles: slices.Clone(c.Roles), http: httpClient, clients: map[outbound.Urgency]*rpc.Client{}, meter: newLatencyMeter()}
	if len(ep.roles) == 0 {
		ep.roles = []Role{RoleRead, RoleSubmit}
	}
	for _, role := range ep.roles {
		if role != RoleRead && role != RoleSubmit && role != RoleArchive && (role != RoleLane || len(ep.roles) > 1) {
			return nil, fmt.Errorf("role of %d characters is not known: expected %s, %s or %s", len(role), RoleRead, RoleSubmit, RoleArchive)
		}
	}
	if c.CAFile != "" {
		if err := cafile.Trust(httpClient, cafile.Options{Path: c.CAFile, Now: e.now, Changed: cafile.LogChanges(e.log, "endpoint", c.Name)}); err != nil {
			return nil, err
		}
	}
	client, err := rpc.New(rpc.Options{URL: c.URL, HTTP: httpClient, Now: e.now, Timeout: e.timeout, Batches: !ep.has(RoleLane), Observe: func(method, class string, took time.Duration) {
		e.observer.RPCCalled(c.Name, method, class, took)
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
	for _, u := range []outbound.Urgency{outbound.FirstSend, outbound.Read, outbound.Rebroadcast, outbound.Background} {
		maxWait := e.maxBudgetWait(u)
		ep.clients[u] = client.Gated(func(ctx context.Context) error { return ep.budget.Wait(ctx, u, maxWait) })
	}
	return ep, nil
}

// Corroborated reports whether two endpoints, or the only one configured, confirm that the
// chain has reached a slot.
func (e *Endpoints) Corroborated(slot uint64) bool { return e.slots.Corroborated(slot, e.now()) }

// SlotIsOld reports whether the slot was old at that time, according to the slots on which two
// endpoints agree. While no two agree, one endpoint's report suffices.
func (e *Endpoints) SlotIsOld(slot uint64, at time.Time) bool { return e.slots.SlotIsOld(slot, at) }

// Status returns the health of every endpoint but the lanes, in their configured order.
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

// Close ends background work and closes idle connections. It does not end sends under way: call
// Flush first.
func (e *Endpoints) Close() {
	e.stop()
	// The wait cannot fail: the context never ends.
	_ = e.backgroundWork.wait(context.Background())
	for _, ep := range slices.Concat(e.all, e.lanes) {
		ep.http.CloseIdleConnections()
	}
}

// noObserver observes nothing.
type noObserver struct{}

func (noObserver) RPCCalled(string, string, string, time.Duration) {}
func (noObserver) BreakerChanged(string, outbound.State)           {}
func (noObserver) RebroadcastSkipped(string)                       {}
func (noObserver) NotificationReceived(string)                     {}
func (noObserver) EndpointContradicted(string)                     {}
