// Package app wires the parts of the relay. It is the only package that imports all other
// packages, and it determines the order in which the parts start and stop.
package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relaypool/relaypool/relay/internal/admission"
	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/internal/commitments"
	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/internal/feepayer"
	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/internal/ratelimit"
	"github.com/relaypool/relaypool/relay/internal/router"
	"github.com/relaypool/relaypool/relay/internal/signer"
	"github.com/relaypool/relaypool/relay/internal/spendcap"
	"github.com/relaypool/relaypool/relay/internal/store"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/swap"
	"github.com/relaypool/relaypool/relay/internal/telemetry"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Options are the inputs of a relay.
type Options struct {
	Config *config.Config
	Log    *slog.Logger
	// Version is X.Y.Z; Build is the build's identity, such as a commit.
	Version, Build string
	// Timing is the transaction manager's timing; the zero value selects the default.
	Timing txmgr.Timing
	// LedgerInterval is the time between two reconciliations of the ledger with the chain, one
	// second or more; 0 selects 30 s.
	LedgerInterval time.Duration
}

// App is one relay process.
type App struct {
	options Options
	log     *slog.Logger
	metrics *telemetry.Metrics

	// heartbeats is a connection pool only for the workers' heartbeats.
	db, heartbeats *pgxpool.Pool
	store          *store.Store
	maintenance    *store.Maintenance
	endpoints      *chain.Endpoints
	rent           *chain.RentRate
	baseFee        *chain.BaseFeeRate
	finality       *chain.Finality
	pool           *shieldpool.Pool
	// lookupTable is the relay's own lookup table; nil for none.
	lookupTable *shieldpool.LookupTable
	formats     *transactionFormats
	// routers is nil when the relay accepts no swaps. swaps is set even then: this relay
	// also refunds the swaps of other relays.
	routers         *router.Routers
	swaps           *swap.Planner
	poolReader      *chain.PoolReader
	payers          *feepayer.Payers
	signers         []*signer.Signer
	apiKeys         apiKeys
	requests        *ratelimit.Counter
	caps            *spendcap.Caps
	ledger          *ledger.Reconciler
	accounting      *accountingCache
	commitmentIndex *commitments.Follower
	readBlocks      chan *onchain.Block // by the index
	reader          *submission.Reader
	submissions     *submission.Handler
	genesisGate     *genesisGate
	admission       *admission.Admission
	checks          *poolChecks
	backlog         *backlogCache
	swapSummary     *swapCache
	// initialised is set once the database is migrated and all parts are open.
	initialised, draining atomic.Bool
	// detailsHandler serves GET /backlog and GET /health on the operations port. It is nil until
	// all parts are open.
	detailsHandler atomic.Pointer[http.Handler]
	fatal          chan error
	started        time.Time

	api, operations          *http.Server
	apiListener, opsListener net.Listener
}

// New opens all parts of a relay: it connects to the database, migrates it and listens. It starts
// only the operations server. If the RPC does not answer, New does not fail: the relay reports
// this in /health and waits.
func New(ctx context.Context, o Options) (_ *App, err error) {
	if o.Config == nil || o.Log == nil {
		return nil, errors.New("the relay needs a configuration and a log")
	}
	if o.Timing == (txmgr.Timing{}) {
		o.Timing = txmgr.DefaultTiming()
	}
	if o.LedgerInterval == 0 {
		o.LedgerInterval = ledgerInterval
	}
	a := &App{options: o, log: o.Log, started: time.Now(), fatal: make(chan error, 4), readBlocks: make(chan *onchain.Block, 64), metrics: telemetry.NewMetrics(telemetry.Build{Version: o.Version, Revision: o.Build})}
	defer func() { //nolint:contextcheck // a.close needs no context
		if err != nil {
			a.close()
		}
	}()
	for _, step := range []func(context.Context) error{a.openOperations, a.openDatabase, a.openChain, a.openSpending, a.openSwaps, a.openSubmissions, a.openMaintenance, a.openServers} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (a *App) close() {
	for _, l := range []net.Listener{a.apiListener, a.opsListener} {
		if l != nil {
			_ = l.Close() // a server that ran has already closed its listener
		}
	}
	if a.endpoints != nil {
		a.endpoints.Close()
	}
	if a.routers != nil {
		a.routers.Close()
	}
	for _, connections := range []*pgxpool.Pool{a.heartbeats, a.db} {
		if connections != nil {
			connections.Close()
		}
	}
}

// Address is the address of the API.
func (a *App) Address() string { return a.apiListener.Addr().String() }

// OperationsAddress is the address of metrics and probes.
func (a *App) OperationsAddress() string { return a.opsListener.Addr().String() }
