// Package httpapi serves the documented interface, relay/openapi.yaml. It decodes
// requests and encodes answers. The relay's other packages, behind the interfaces of this
// package, decide what a request means. No content of a request reaches the log, the
// metrics or an error body.
package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/go-chi/httprate"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/internal/commitments"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/viewingkey"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// MaxBody is the largest request body, in bytes: several times what the largest
// submission needs, and small enough to read before anything is checked.
const MaxBody = 16 << 10

// Admission accepts submissions. A refusal is a *refusal.Refusal; any other error is a fault of
// the relay, not of the request.
type Admission interface {
	// Submit accepts the request durably. If the request repeats an accepted one, Submit returns
	// the earlier submission. If r.Wait is set, Submit may take longer by that time.
	Submit(ctx context.Context, r submission.Request) (*submission.Submission, error)
}

// Submissions reads submissions. Its errors are like Admission's.
type Submissions interface {
	// Wait returns the submission once it is done, or in its current state when ctx
	// ends or the relay drains.
	Wait(ctx context.Context, id uuid.UUID) (*submission.Submission, error)
	// Get reads a submission; not_found when there is none.
	Get(ctx context.Context, id uuid.UUID) (*submission.Submission, error)
	// Backlog counts the whole fleet's work.
	Backlog(ctx context.Context) (submission.Backlog, error)
}

// Commitments reads the published leaves, which are in order and without gaps.
type Commitments interface {
	// Newest returns how many leaves are published, of which generation, and the last of them.
	Newest(ctx context.Context) (commitments.Position, [32]byte, error)
	// Read returns at most limit leaves of a generation, starting at the index from. It
	// returns commitments.ErrMoved when the generation has changed or has no leaf
	// there.
	Read(ctx context.Context, generation, from uint64, limit int) ([]commitments.IndexedCommitment, error)
}

// Tree reads the newest root on the chain. The mint is a mint of the pool, in base58,
// or empty for the pool's first mint.
type Tree interface {
	Root(ctx context.Context, mint string) (onchain.Root, error)
}

// ViewingKeys registers a viewing key and returns its identifier.
type ViewingKeys interface {
	Register(ctx context.Context, r viewingkey.Registration) (string, error)
}

// Health checks the relay's parts. Check must return even when a part does not answer.
type Health interface {
	Check(ctx context.Context) HealthReport
}

// HealthReport is the health of the relay, and of each of its parts by name.
type HealthReport struct {
	Status openapi.HealthStatus
	Checks map[string]openapi.HealthCheck
}

// Observer counts requests. Method and route are from fixed sets: the route is a path
// of the OpenAPI document, such as /status/{id}, or "unmatched".
type Observer interface {
	Request(method, route string, status int, took time.Duration)
	// ClientRequest counts the request of a client whose API key has that name.
	ClientRequest(keyName string, status int)
}

// Info describes the relay to clients.
type Info struct {
	// Version is X.Y.Z; Build is the build's identity, such as a commit.
	Version, Build string
	// Profile is the pool's program profile.
	Profile *shieldpool.Profile
	// NoteBounds are how many bytes of note envelope fit into each kind of transaction (transfer,
	// withdrawal, swap) in the format before V1, which the network always accepts.
	NoteBounds map[shieldpool.Kind]int
	// NoteBoundsByFormat returns the same for each format that the relay sends now.
	NoteBoundsByFormat func() shieldpool.NoteBounds
	// Swaps says how this relay swaps; nil when it does not.
	Swaps *Swaps
	// ComplianceKey is the X25519 public key that viewing keys are sealed to.
	ComplianceKey [32]byte
}

// Swaps is what clients can know about how a relay swaps.
type Swaps struct {
	// RouterProgram is the program on the chain that the router's instructions call.
	RouterProgram solana.PublicKey
}

// Options are the parts and settings of the API. All are required, except those whose
// comment says what happens without them.
type Options struct {
	Admission   Admission
	Submissions Submissions
	Commitments Commitments
	Tree        Tree
	ViewingKeys ViewingKeys
	Health      Health
	Info        Info

	Log      *slog.Logger
	Observer Observer
	Now      func() time.Time
	// NewID makes the ids of requests: 1 to 64 letters, digits, '.', '_' or '-'.
	NewID func() string

	// CallTimeout bounds each call to one of the parts above. It does not include the waits of a
	// submission.
	CallTimeout time.Duration
	// ProcessedCommitments returns leaves that are not confirmed yet.
	ProcessedCommitments func(context.Context) (commitments.Processed, error)
	// FinalCommitments returns how many leaves of a generation can never change.
	FinalCommitments func() (generation, leaves uint64)
	// WaitDefault is the time that POST /transact waits at most for the acceptance and the outcome
	// of a submission, unless the client asks for another time. WaitMax is the longest time that
	// it can ask for, and is not below WaitDefault.
	WaitDefault, WaitMax time.Duration
	// ListStall is how long a reader of GET /commitments may take to read a chunk of
	// the answer before it is cut off, and ListTime is how long the whole answer may take.
	ListStall, ListTime time.Duration

	// RatePerMinute is how many requests one client address may make in a
	// minute; 0 for no limit.
	RatePerMinute int
	// ClientIPHeader is the header in which the proxy in front writes the
	// client's address, such as X-Real-IP or X-Forwarded-For; empty when clients
	// connect directly.
	ClientIPHeader string
	// CORSOrigins are the browser origins that may call, such as https://app.example or *.
	// Without origins, the answers have no CORS headers.
	CORSOrigins []string
	// RequestCounter counts requests for the limits; nil counts those of this process alone.
	RequestCounter httprate.LimitCounter
	// APIKeys returns the valid API keys, which may change; nil when a request needs no key.
	APIKeys func() []APIKey
}

func (o *Options) validate() error {
	var faults []error
	need := func(missing bool, name string) {
		if missing {
			faults = append(faults, fmt.Errorf("%s is missing", name))
		}
	}
	need(o.Admission == nil, "Admission")
	need(o.Submissions == nil, "Submissions")
	need(o.Commitments == nil, "Commitments")
	need(o.ProcessedCommitments == nil, "ProcessedCommitments")
	need(o.FinalCommitments == nil, "FinalCommitments")
	need(o.Tree == nil, "Tree")
	need(o.ViewingKeys == nil, "ViewingKeys")
	need(o.Health == nil, "Health")
	need(o.Log == nil, "Log")
	need(o.Observer == nil, "Observer")
	need(o.Now == nil, "Now")
	need(o.NewID == nil, "NewID")
	need(o.CallTimeout <= 0, "CallTimeout")
	need(o.ListStall <= 0, "ListStall")
	need(o.ListTime <= 0, "ListTime")
	need(o.Info.Profile == nil || len(o.Info.Profile.Mints) == 0, "Info.Profile with a mint")
	need(o.Info.NoteBoundsByFormat == nil, "Info.NoteBoundsByFormat")
	need(o.Info.ComplianceKey == [32]byte{}, "Info.ComplianceKey")
	for _, k := range []shieldpool.Kind{shieldpool.KindTransfer, shieldpool.KindWithdrawal} {
		need(o.Info.NoteBounds[k] <= 0, "Info.NoteBounds of a "+string(k))
	}
	if s := o.Info.Swaps; s != nil {
		need(s.RouterProgram.IsZero(), "Info.Swaps.RouterProgram")
		need(o.Info.NoteBounds[shieldpool.KindSwap] <= 0, "Info.NoteBounds of a swap")
	}
	if !regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+$`).MatchString(o.Info.Version) {
		faults = append(faults, fmt.Errorf("version %q is not of the form X.Y.Z, which clients expect", o.Info.Version))
	}
	if o.WaitDefault < 0 || o.WaitMax < o.WaitDefault {
		faults = append(faults, fmt.Errorf("WaitDefault %v, WaitMax %v: expected 0 or more, and WaitMax not below WaitDefault", o.WaitDefault, o.WaitMax))
	}
	if o.RatePerMinute < 0 {
		faults = append(faults, fmt.Errorf("rate of %d a minute: expected 0, for no limit, or more", o.RatePerMinute))
	}
	return errors.Join(faults...)
}

// api implements the generated server interface.
type api struct {
	Options
	info openapi.ServiceInfo
	// pools are the profile's pools, by the field element of their mint.
	pools   map[[32]byte]*shieldpool.Pool
	chunks  *chunks
	newest  knownPosition
	buffers buffers
	readers readers
	health  health
}

var _ openapi.ServerInterface = (*api)(nil)

// API serves the documented interface.
type API struct {
	http.Handler
	operations http.Handler
}

// Operations serves GET /backlog, for autoscalers, and GET /health with details.
// Neither needs an API key, and no rate limit applies.
func (a *API) Operations() http.Handler { return a.operations }

// New makes the handler of every route. Its error lists all invalid options.
func New(o Options) (*API, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("http api: %w", err)
	}
	pools, err := poolsOf(o.Info.Profile)
	if err != nil {
		return nil, fmt.Errorf("http api: %w", err)
	}
	chunks, err := newChunks(o.Commitments, o.CallTimeout, o.Log)
	if err != nil {
		return nil, fmt.Errorf("http api: %w", err)
	}
	a := &api{
		Options: o, info: serviceInfo(o.Info), pools: pools,
		chunks: chunks, readers: readers{byAddress: map[string]int{}},
	}
	r := a.router()
	if len(o.CORSOrigins) > 0 {
		r.Use(allowOrigins(o.CORSOrigins))
	}
	if o.APIKeys != nil {
		r.Use(a.identifyKey)
	}
	if o.RatePerMinute > 0 || o.APIKeys != nil {
		r.Use(a.limitRate())
	}
	r.Use(middleware.GetHead, joinPrefer)
	operations := a.router()
	operations.Use(middleware.GetHead)
	operations.Get(contract.BacklogPath, a.GetBacklog)
	operations.Get(contract.HealthPath, a.healthDetails)
	serverOptions := openapi.ChiServerOptions{BaseRouter: r, ErrorHandlerFunc: a.badParameter}
	if o.APIKeys != nil {
		serverOptions.Middlewares = []openapi.MiddlewareFunc{a.requireKey}
	}
	return &API{
		Handler:    openapi.HandlerWithOptions(a, serverOptions),
		operations: operations,
	}, nil
}

// router makes a router without routes, with the middleware of every request.
func (a *api) router() *chi.Mux {
	r := chi.NewRouter()
	r.Use(a.identify, a.observe, a.recoverPanic)
	r.NotFound(a.routeNotFound)
	r.MethodNotAllowed(a.methodNotAllowed)
	return r
}

// call returns a context for one call to a part of the relay, bounded by CallTimeout.
func (a *api) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, a.CallTimeout)
}
