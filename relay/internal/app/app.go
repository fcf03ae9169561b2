// Package app wires the relay: it is the only package that knows all the
// others, and the order in which they start and stop.
package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/internal/commitments"
	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/internal/feepayer"
	"github.com/relaypool/relaypool/relay/internal/httpapi"
	"github.com/relaypool/relaypool/relay/internal/store"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/telemetry"
	"github.com/relaypool/relaypool/relay/internal/viewingkey"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// callTimeout bounds what a request asks of database and chain, the wait for its outcome apart.
	callTimeout = 15 * time.Second
	// stepTimeout ends a step of a submission that hangs.
	stepTimeout = 30 * time.Second
)

// Options are what a relay is made of.
type Options struct {
	Config *config.Config
	Log    *slog.Logger
	// Version is X.Y.Z; Build is the build's identity, such as a commit.
	Version, Build string
	// Timing is the submission engine's; the zero value is the default.
	Timing submission.Timing
}

// App is one relay process.
type App struct {
	o       Options
	log     *slog.Logger
	metrics *telemetry.Metrics

	db       *pgxpool.Pool
	queue    *store.Queue
	store    *store.Store
	rpc      *chain.Client
	pool     *chain.PoolReader
	payer    *feepayer.Watcher
	leaves   *commitments.Follower
	desk     *submission.Desk
	engine   *submission.Engine
	gate     *gate
	draining atomic.Bool

	api, operations          *http.Server
	apiListener, opsListener net.Listener
}

// New connects, migrates, listens and wires; it starts nothing. An RPC that
// does not answer is no error: the relay says so in /health and waits.
func New(ctx context.Context, o Options) (_ *App, err error) {
	if o.Config == nil || o.Log == nil {
		return nil, errors.New("the relay needs a configuration and a log")
	}
	if o.Timing == (submission.Timing{}) {
		o.Timing = submission.DefaultTiming()
	}
	a := &App{o: o, log: o.Log, metrics: telemetry.NewMetrics(telemetry.Build{Version: o.Version, Revision: o.Build})}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	for _, step := range []func(context.Context) error{a.openDatabase, a.openChain, a.openEngine, a.openServers} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (a *App) close() {
	for _, l := range []net.Listener{a.apiListener, a.opsListener} {
		if l != nil {
			_ = l.Close() // a server that ran has closed it already
		}
	}
	if a.db != nil {
		a.db.Close()
	}
}

func (a *App) openDatabase(ctx context.Context) error {
	var err error
	if a.db, err = store.Open(ctx, a.o.Config.DatabaseURL.Reveal(), a.o.Config.Database.MaxConnections); err != nil {
		return err
	}
	if err := store.Migrate(ctx, a.db, a.log); err != nil {
		return err
	}
	if err := store.WarnUnreplicated(ctx, a.db, a.log); err != nil {
		return err
	}
	a.store, err = store.New(a.db)
	return err
}

func (a *App) openChain(context.Context) error {
	c := a.o.Config
	key, err := feepayer.ReadFile(c.FeePayerKeyFile[0])
	if err != nil {
		return fmt.Errorf("--fee-payer-key-file: %w", err)
	}
	a.rpc, err = chain.New(chain.Options{URL: c.Endpoints[0].URL.Reveal(), HTTP: chain.NewHTTPClient(), Now: time.Now, Observe: func(method, class string, took time.Duration) {
		a.metrics.RPC(c.Endpoints[0].Name, method, class, took)
	}})
	if err != nil {
		return err
	}
	shielded, err := c.Profile.Pool(c.Profile.Mints[0])
	if err != nil {
		return err
	}
	a.pool, err = chain.NewPool(chain.PoolOptions{Accounts: a.rpc, Pool: shielded, Now: time.Now, Changed: a.treeChanged})
	if err != nil {
		return err
	}
	a.payer, err = feepayer.NewWatcher(feepayer.Options{
		Payer: key.PublicKey(), Balances: a.rpc, Log: a.log, Now: time.Now, MinBalance: c.FeePayerMinBalance,
	})
	if err != nil {
		return err
	}
	a.gate = newGate(a.rpc, c.Genesis, c.Key.Hash())
	a.leaves, err = a.newFollower(shielded)
	if err != nil {
		return err
	}
	return a.openSubmissions(shielded, key)
}

// payingKey signs and says what it can pay.
type payingKey struct {
	*feepayer.Key
	*feepayer.Watcher
}

func (a *App) openSubmissions(shielded *shieldpool.Pool, key *feepayer.Key) error {
	c := a.o.Config
	signs, err := submission.NewSignPolicy(c.ProofA, a.store, c.Key.Hash(), time.Now)
	if err != nil {
		return err
	}
	payer := payingKey{key, a.payer}
	a.engine, err = submission.NewEngine(submission.EngineOptions{
		Store: a.store, Chain: a.rpc, State: a.pool, Pool: shielded, FeePayer: payer, Leaves: a.leaves, Signs: signs,
		Observer: a.metrics, Log: a.log, Now: time.Now, Owner: uuid.New(), Timing: a.o.Timing,
		Price: submission.PriceRule{Floor: c.PriorityFeeFloor, Cap: c.PriorityFeeCap, Percentile: c.PriorityFeePercentile},
	})
	if err != nil {
		return err
	}
	admission, err := submission.NewAdmission(submission.AdmissionOptions{
		Store: a.store, Pool: shielded, State: a.pool, FeePayer: payer, Key: c.Key, Signs: signs,
		Observer: a.metrics, Now: time.Now, NewID: uuid.New,
	})
	if err != nil {
		return err
	}
	a.gate.admission = admission
	a.desk, err = submission.NewDesk(a.store, a.log)
	return err
}

func (a *App) openEngine(context.Context) error {
	var err error
	a.queue, err = store.NewQueue(a.store, store.QueueOptions{
		Advance: a.engine.Advance, Workers: a.o.Config.Concurrency, StepTimeout: stepTimeout, SoftStop: queueStop, Log: a.log,
	})
	a.readGauges() //nolint:contextcheck // a scrape has no context of ours; each reading bounds itself
	return err
}

func (a *App) openServers(ctx context.Context) error {
	c := a.o.Config
	keys, err := viewingkey.New(viewingkey.Options{
		Store: a.store, Messages: c.Profile.SignInMessages, CompliancePublicKey: c.CompliancePublicKey, Random: rand.Reader,
	})
	if err != nil {
		return err
	}
	handler, err := httpapi.New(httpapi.Options{
		Submissions: submissions{a.gate, a.desk}, Commitments: a.leaves, Tree: a.pool, ViewingKeys: keys, Health: a,
		Info: httpapi.Info{
			Version: a.o.Version, Build: a.o.Build, Profile: c.Profile,
			NoteBounds: a.gate.admission.NoteBounds(), ComplianceKey: c.CompliancePublicKey,
		},
		Log: a.log, Observer: a.metrics, Now: time.Now, NewID: uuid.NewString, CallTimeout: callTimeout,
		WaitDefault: c.Wait, WaitMax: c.WaitMax, RatePerMinute: c.RateLimit, ClientIPHeader: c.ClientIPHeader, CORSOrigins: c.CORSOrigins,
	})
	if err != nil {
		return err
	}
	var listen net.ListenConfig
	if a.apiListener, err = listen.Listen(ctx, "tcp", c.Listen); err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	if a.opsListener, err = listen.Listen(ctx, "tcp", c.OperationsListen); err != nil {
		return fmt.Errorf("--operations-listen: %w", err)
	}
	a.api = httpapi.NewServer(c.Listen, handler, callTimeout+c.WaitMax, a.log)
	a.operations = httpapi.NewServer(c.OperationsListen, a.metrics.OperationsHandler(a.ready, handler.Backlog()), callTimeout, a.log)
	return nil
}

// Address is where the API listens.
func (a *App) Address() string { return a.apiListener.Addr().String() }

// OperationsAddress is where metrics and probes are served.
func (a *App) OperationsAddress() string { return a.opsListener.Addr().String() }

// submissions puts admission and desk behind one interface.
type submissions struct {
	*gate
	*submission.Desk
}

func hexHash(h [32]byte) string { return hex.EncodeToString(h[:]) }
