// Package stand has the set-up that the benchmark measures: relays, a database and a
// chain. Each measurement gets a new one, so that it does not depend on earlier ones.
package stand

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/hack/sandbox"
	"github.com/relaypool/relaypool/hack/wallet/simulator"
	"github.com/relaypool/relaypool/relay/contract"
)

const (
	// payers is how many fee payers the relays share.
	payers = 4
	// connections is the number of database connections of all relays together, and
	// maxConnectionsEach is the maximum for one relay, which is the relay's default.
	connections, maxConnectionsEach = 160, 40
	// unlimitedUnits is a compute limit that never binds.
	unlimitedUnits    = 1_000_000_000
	readHeaderTimeout = 5 * time.Second
)

// Lab is the part that all measurements share: programs, keys, and a database server
// with the databases that the measurements copy.
type Lab struct {
	*sandbox.Sandbox
	Simulator *simulator.Simulator
	// Endpoints is as how many RPC endpoints relays see the chain.
	Endpoints int
}

// NewLab builds the relay with additional flags for go build, starts the database server,
// and fills a database for each number of finished submissions in rows. Close ends it.
func NewLab(ctx context.Context, root, state string, rows []int, progress io.Writer, flags ...string) (_ *Lab, err error) {
	box, err := sandbox.New(root, state, progress)
	if err != nil {
		return nil, err
	}
	l := &Lab{Sandbox: box}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close(context.WithoutCancel(ctx)))
		}
	}()
	if l.Simulator, err = box.Simulator(); err != nil {
		return nil, err
	}
	fmt.Fprintln(progress, "building the relay")
	if err := box.BuildRelay(ctx, append(flags, "-trimpath")...); err != nil {
		return nil, err
	}
	if err := box.MakeKeys(ctx, payers, 1); err != nil {
		return nil, err
	}
	fmt.Fprintln(progress, "starting Postgres")
	if err := box.StartPostgres(ctx); err != nil {
		return nil, err
	}
	if err := box.SQL(ctx, "postgres", "ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'"); err != nil {
		return nil, err
	}
	if err := box.Postgres.Restart(ctx); err != nil {
		return nil, err
	}
	for _, n := range rows {
		fmt.Fprintf(progress, "filling a database with %d finished submissions\n", n)
		if err := l.fill(ctx, n); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// Setup is the configuration of one measurement.
type Setup struct {
	// RootHistorySize is how many roots the program remembers.
	RootHistorySize int
	// Processes is the number of relays. Concurrency is the concurrency of each relay.
	Processes, Concurrency int
	// Rows is how many finished submissions the database begins with.
	Rows int
	// Swaps gives the relays the chain's swap router, and workers for swaps in
	// addition, as many as Concurrency.
	Swaps bool
	// Limits sets mainnet's compute limits of a block; otherwise a block has no limit.
	Limits bool
	// NoEarlyAttempts lets the relays sign a submission once while nothing lands.
	NoEarlyAttempts bool
	// SeedLeaves is how many leaves the chain begins with.
	SeedLeaves uint64
}

// Stand is a running set-up.
type Stand struct {
	Setup
	*Lab
	*recorder
	Relays []*sandbox.Relay

	server  *http.Server
	options sandbox.RelayOptions // of all relays
}

// Open starts chain and relays on a fresh copy of a database. End ends them.
func (l *Lab) Open(ctx context.Context, setup Setup) (_ *Stand, err error) {
	s := &Stand{Setup: setup, Lab: l}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.End(context.WithoutCancel(ctx)))
		}
	}()
	// The copy is written to disk before the measurement starts; otherwise the disk
	// writes it while commits are timed.
	if err := l.FreshDatabase(ctx, database, template(setup.Rows)); err != nil {
		return nil, err
	}
	if err := l.SQL(ctx, "postgres", "CHECKPOINT"); err != nil {
		return nil, err
	}
	o := localnet.Options{RootHistory: setup.RootHistorySize, SeedLeaves: setup.SeedLeaves}
	if !setup.Limits {
		o.Limits = bank.BlockLimits{Block: unlimitedUnits, Account: unlimitedUnits}
	}
	funds := map[solana.PublicKey]uint64{l.Pool.Address: sandbox.PoolLamports}
	for _, key := range l.Payers {
		funds[key.PublicKey()] = sandbox.PoolLamports
	}
	if err := l.StartChain(ctx, o, sandbox.Addresses{}, funds); err != nil {
		return nil, err
	}
	url, err := s.serveRecorder(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.startRelays(ctx, url); err != nil {
		return nil, err
	}
	return s, nil
}

// serveRecorder serves the chain behind a recorder of the sent transactions.
func (s *Stand) serveRecorder(ctx context.Context) (url string, err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("serve the chain: %w", err)
	}
	s.recorder = newRecorder(s.Chain, time.Now)
	s.server = &http.Server{Handler: s.recorder, ReadHeaderTimeout: readHeaderTimeout}
	go func() { _ = s.server.Serve(listener) }() // until End
	return "http://" + listener.Addr().String(), nil
}

func (s *Stand) startRelays(ctx context.Context, url string) error {
	var endpoints []sandbox.Endpoint
	for i := range max(s.Endpoints, 1) {
		endpoints = append(endpoints, sandbox.Endpoint{Name: fmt.Sprintf("rpc-%d", i+1), URL: fmt.Sprintf("%s/%d", url, i+1)})
	}
	s.options = sandbox.RelayOptions{Endpoints: endpoints, Flags: []string{
		fmt.Sprintf("--database-max-connections=%d", min(maxConnectionsEach, connections/s.Processes)), fmt.Sprintf("--root-history-size=%d", s.RootHistorySize),
		"--rate-limit=0", "--spend-cap-transfers-day=0", fmt.Sprintf("--concurrency=%d", s.Concurrency), "--log-format=json", "--log-level=info",
	}}
	if s.Swaps {
		s.options.Router, s.options.Flags = s.Router, append(s.options.Flags, fmt.Sprintf("--swap-concurrency=%d", s.Concurrency))
	}
	if s.NoEarlyAttempts {
		s.options.Flags = append(s.options.Flags, "--max-early-fees=0")
	}
	for i := range s.Processes {
		r, err := s.Another(ctx, fmt.Sprintf("relay %d", i+1))
		if err != nil {
			return err
		}
		if err := r.Start(); err != nil {
			return err
		}
		s.Relays = append(s.Relays, r)
	}
	for _, r := range s.Relays {
		if err := r.Await(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Another prepares a further relay.
func (s *Stand) Another(ctx context.Context, name string) (*sandbox.Relay, error) {
	o := s.options
	o.Name = name
	return s.NewRelay(ctx, o)
}

// RouterCalls returns the number of all calls of the swap router.
func (s *Stand) RouterCalls() (calls uint64) {
	for _, n := range s.Chain.Router().Stats().Calls {
		calls += n
	}
	return calls
}

// DropSends makes the chain drop all sent transactions, so that nothing lands.
func (s *Stand) DropSends() error {
	return s.Chain.SetFaults(map[string][]fault.Rule{localnet.DefaultEndpoint: {{Method: "sendTransaction", Drop: true}}})
}

// Metrics reads each relay's metrics page.
func (s *Stand) Metrics(ctx context.Context) ([][]byte, error) {
	var pages [][]byte
	for _, r := range s.Relays {
		page, err := sandbox.Get(ctx, r.Operations+contract.MetricsPath)
		if err != nil {
			return nil, err
		}
		pages = append(pages, page)
	}
	return pages, nil
}

// End ends relays and chain, and drops the database. It does not wait for submissions in flight.
func (s *Stand) End(ctx context.Context) error {
	err := s.StopRelays()
	if s.server != nil {
		err = errors.Join(err, s.server.Close())
	}
	return errors.Join(err, s.DropDatabase(ctx, database))
}
