// Package stage is a fleet for the dashboards: real relays with Postgres and the local chain,
// clients that load them, and injected faults, so that every dashboard has data to show.
package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/sandbox"
)

// Options of a stage. All are required.
type Options struct {
	// Root is the checkout that the relay is built from. State is an empty folder.
	Root, State string
	// Namespace and Pool are the namespace and name of the RelayPool that the operator reconciles.
	Namespace, Pool string
	// Slot is the slot duration of the chain.
	Slot time.Duration
	// Rate is the average number of new spends a second.
	Rate float64
	// Progress receives a line for each event.
	Progress io.Writer
}

const (
	relays, payers, endpoints = 2, 2, 2
	// minimum is the balance that a payer has to keep. The second payer starts with only
	// lowFunds above it, and runs out of funds.
	minimum, lowFunds = 50_000_000, 60_000_000
	highFunds         = 50 * solana.LAMPORTS_PER_SOL
	// budget is the second endpoint's limit, in requests a second. It is too small.
	budget = 6
	// inFlight bounds the clients.
	inFlight = 200

	emptyPayerTimeout = time.Minute
	endpointName      = "endpoint-%d"
)

// relayFlags are the relays' flags. The hourly cap is never reached, the cap of transfers is
// reached soon. With this concurrency a burst makes a queue.
var relayFlags = []string{
	"--database-max-connections=16", fmt.Sprintf("--fee-payer-min-balance=%d", minimum), "--spend-cap-hour=20000000000",
	"--spend-cap-transfers-day=60000000", "--rate-limit=0", "--concurrency=6", "--log-format=json",
}

// Stage is a running fleet.
type Stage struct {
	*sandbox.Sandbox
	o         Options
	endpoints []sandbox.Endpoint
	relays    []*sandbox.Relay
	load      *load.Load
	http      *http.Client
	began     time.Time
	operator  operator
}

// Start builds and starts everything. Close ends it.
func Start(ctx context.Context, o Options) (_ *Stage, err error) {
	if o.Root == "" || o.State == "" || o.Namespace == "" || o.Pool == "" || o.Slot <= 0 || o.Rate <= 0 || o.Progress == nil {
		return nil, errors.New("start the stage: every option is required")
	}
	s := &Stage{o: o, http: &http.Client{Transport: clientWithKey{http.DefaultTransport}}, began: time.Now()}
	if s.Sandbox, err = sandbox.New(o.Root, o.State, o.Progress); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close(context.WithoutCancel(ctx)))
		}
	}()
	for _, step := range []struct {
		doing string
		do    func(context.Context) error
	}{
		{"building the relay", func(ctx context.Context) error { return s.BuildRelay(ctx) }},
		{"starting the chain", s.startChain}, {"starting Postgres", s.startPostgres},
		{fmt.Sprintf("starting %d relays", relays), s.startRelays}, {"building and starting the operator", s.startOperator},
	} {
		s.progressf("%s", step.doing)
		if err := step.do(ctx); err != nil {
			return nil, fmt.Errorf("start the stage: %w", err)
		}
	}
	if err := s.makeLoad(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Stage) progressf(format string, args ...any) {
	fmt.Fprintf(s.o.Progress, "%6.1f s  %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

func (s *Stage) startChain(ctx context.Context) error {
	if err := s.MakeKeys(ctx, payers, 1); err != nil {
		return err
	}
	if err := s.StartChain(ctx, localnet.Options{SlotDuration: s.o.Slot, Seed: 1}, sandbox.Addresses{}, map[solana.PublicKey]uint64{
		s.Pool.Address: sandbox.PoolLamports, s.Payers[0].PublicKey(): highFunds, s.Payers[1].PublicKey(): minimum + lowFunds,
	}); err != nil {
		return err
	}
	for i := range endpoints {
		name := fmt.Sprintf(endpointName, i+1)
		url, err := s.Chain.ListenEndpoint(name, "127.0.0.1:0")
		if err != nil {
			return err
		}
		s.endpoints = append(s.endpoints, sandbox.Endpoint{Name: name, URL: url})
	}
	s.endpoints[1].Budget = budget
	return nil
}

func (s *Stage) startPostgres(ctx context.Context) error {
	if err := s.StartPostgres(ctx); err != nil {
		return err
	}
	return s.FreshDatabase(ctx, "relaypool", "")
}

func (s *Stage) startRelays(ctx context.Context) error {
	_, flags, err := s.StartKeyService(ctx)
	if err != nil {
		return err
	}
	for i := range relays {
		r, err := s.NewRelay(ctx, sandbox.RelayOptions{Name: fmt.Sprintf("relay-%d", i+1), Endpoints: s.endpoints, Router: s.Router, APIKey: apiKey, Flags: slices.Concat(relayFlags, flags)})
		if err != nil {
			return err
		}
		s.relays = append(s.relays, r)
		if err := startRelay(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// apiKey is the key that the load presents.
const apiKey = "an-api-key-of-the-stage" //nolint:gosec // it opens nothing but this stage

// clientWithKey presents apiKey with each request.
type clientWithKey struct{ http.RoundTripper }

func (c clientWithKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+apiKey)
	return c.RoundTripper.RoundTrip(r)
}

func startRelay(ctx context.Context, r *sandbox.Relay) error {
	if err := r.Start(); err != nil {
		return err
	}
	return r.Await(ctx)
}

func (s *Stage) makeLoad() error {
	prover, err := s.Simulator()
	if err != nil {
		return err
	}
	s.load, err = load.New(load.Options{
		Relays: s.URLs(), Simulator: prover, Mint: s.Pool.Mint, Seed: 1, HTTP: s.http, Now: time.Now,
		Rate: s.o.Rate, InFlight: inFlight, Withdrawals: 0.6, Rivals: 0.05, Swaps: 0.25, Unreachable: 0.2, Market: s.Market(),
		PollMin: time.Second, PollMax: 2 * time.Second, PauseMax: 4 * time.Second,
	})
	return err
}

// Relay is the address at which Prometheus scrapes one relay.
type Relay struct{ Name, Operations string }

// Relays returns the addresses of all relays.
func (s *Stage) Relays() (all []Relay) {
	for _, r := range s.relays {
		all = append(all, Relay{r.Name, strings.TrimPrefix(r.Operations, "http://")})
	}
	return all
}

// Close ends everything, and kills processes that still run.
func (s *Stage) Close(ctx context.Context) error {
	s.http.CloseIdleConnections()
	return errors.Join(s.operator.close(), s.Sandbox.Close(ctx))
}
