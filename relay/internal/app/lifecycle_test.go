package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/freeport"
	"github.com/relaypool/relaypool/hack/wallet/wallettest"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/internal/pgtest"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// TestADatabaseOutageIsReportedAndSurvived stops the server under a running relay, and starts it again.
func TestADatabaseOutageIsReportedAndSurvived(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t)
	f, vk := newForger(t)
	s := newFixture(t, fixtureOptions{vk: vk, databaseURL: server.URL("postgres")})
	s.waitHealthy()
	in := f.inputs(s, 5*sol, solana.PublicKey{})
	s.deposit(&shieldpool.Call{Proof: f.prove(t, in), Inputs: in})
	to := newKey(t).PublicKey()
	in = f.inputs(s, -sol, to)
	body := submissionBody(f.prove(t, in), in.Bytes(), map[string]any{"recipient": to.String()})

	must(t, server.Stop(t.Context()))
	wantRefused(t, s.call(http.MethodPost, "/transact", body), 503, "database_unavailable")
	wantRefused(t, s.call(http.MethodGet, "/commitments", nil), 503, "database_unavailable")
	wantRefused(t, s.call(http.MethodGet, "/backlog", nil), 503, "database_unavailable")
	eventually(t, "health is down", func() bool {
		a := s.health()
		return a.status == 503 && a.body["status"] == "down"
	})
	if status := s.getStatus(s.operationsURL + contract.ReadinessPath); status != http.StatusOK {
		t.Errorf("readiness is %d, want 200: without the database the relay stays ready", status)
	}
	must(t, server.Restart(t.Context()))
	eventually(t, "the relay accepts the same request", func() bool {
		return s.call(http.MethodPost, "/transact", body).status == http.StatusOK
	})
}

// While a starting relay waits for its database, it is alive and not ready.
func TestARelayWaitsForItsDatabaseAtStart(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t)
	_, vk := newForger(t)
	s := newFixture(t, fixtureOptions{vk: vk, databaseURL: server.URL("postgres")})
	s.stop()
	must(t, server.Stop(t.Context()))
	var operations string
	cfg := s.configure(func(c *config.Serve) {
		addresses, err := freeport.Find(t.Context(), 1)
		must(t, err)
		operations = addresses[0]
		c.OperationsListen = operations
	})
	started := make(chan *relay, 1)
	go func() { started <- s.runRelay(cfg) }()
	probe := func(path string, want int) {
		t.Helper()
		eventually(t, fmt.Sprintf("%s is %d", path, want), func() bool {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+operations+path, nil)
			must(t, err)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				return false
			}
			must(t, resp.Body.Close())
			return resp.StatusCode == want
		})
	}
	probe(contract.LivenessPath, http.StatusOK)
	probe(contract.ReadinessPath, http.StatusServiceUnavailable)
	select {
	case <-started:
		t.Fatal("the relay has started without its database")
	default:
	}
	must(t, server.Restart(t.Context()))
	probe(contract.ReadinessPath, http.StatusOK)
	s.relay = <-started
	s.waitHealthy()
}

func (s *fixture) getStatus(url string) int {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, url, nil)
	must(s.t, err)
	resp, err := http.DefaultClient.Do(req)
	must(s.t, err)
	must(s.t, resp.Body.Close())
	return resp.StatusCode
}

// TestAnotherRelayFinishesSubmissionsAfterAShutdown stops a relay that has accepted
// submissions. A second relay on the same database finishes them.
func TestAnotherRelayFinishesSubmissionsAfterAShutdown(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	s := newFixture(t, fixtureOptions{vk: vk, databaseURL: pgtest.URL(t)})
	s.waitHealthy()
	in := f.inputs(s, 5*sol, solana.PublicKey{})
	s.deposit(&shieldpool.Call{Proof: f.prove(t, in), Inputs: in})
	var paths []string
	for range 5 {
		to := newKey(t).PublicKey()
		in := f.inputs(s, -sol/2, to)
		a := s.call(http.MethodPost, "/transact", submissionBody(f.prove(t, in), in.Bytes(), map[string]any{"recipient": to.String()}), "Prefer", "respond-async")
		if a.status != http.StatusAccepted {
			t.Fatalf("a withdrawal is answered %d %v, want 202", a.status, a.body)
		}
		paths = append(paths, a.header.Get("Location"))
	}
	s.stop()
	if err := <-s.ended; err != nil {
		t.Errorf("the relay ended with error %v, want none", err)
	} else {
		s.ended <- nil
	}
	s.startRelay()
	for _, path := range paths {
		eventually(t, "the second relay finishes the submission", func() bool {
			return s.call(http.MethodGet, path, nil).at("data", "status") == "completed"
		})
	}
	var attempts int
	must(t, s.db.QueryRow(t.Context(), "SELECT count(*) FROM attempts").Scan(&attempts))
	if attempts != len(paths) {
		t.Errorf("%d transactions were signed for %d submissions, want one each", attempts, len(paths))
	}
}

// Anybody can forge proofs under the development key.
func TestTheDevelopmentKeyIsRefusedOnOtherChains(t *testing.T) {
	t.Parallel()
	vk, err := wallettest.Prover(t).VerificationKey(t.Context())
	must(t, err)
	key, err := groth16.ParseKey(vk)
	must(t, err)
	for name, tt := range map[string]struct {
		served, configured solana.Hash
		key                [32]byte
		refused            bool
	}{
		"the development key on the local chain":    {shieldpool.DevelopmentGenesisHash, solana.Hash{}, key.Hash(), false},
		"the development key on another chain":      {solana.Hash{1}, solana.Hash{}, key.Hash(), true},
		"the development key on a configured chain": {solana.Hash{1}, solana.Hash{1}, key.Hash(), true},
		"another key on the configured chain":       {solana.Hash{1}, solana.Hash{1}, [32]byte{1}, false},
		"another chain than configured":             {solana.Hash{2}, solana.Hash{1}, [32]byte{1}, true},
	} {
		g := newGenesisGate(stubGenesis(tt.served), tt.configured, tt.key, noPreparation)
		if _, err := g.check(t.Context()); errors.Is(err, errWrongChain) != tt.refused || g.open.Load() == tt.refused {
			t.Errorf("%s: error %v, gate open: %v; want the chain refused: %v", name, err, g.open.Load(), tt.refused)
		}
	}
}

type stubGenesis solana.Hash

func (g stubGenesis) GenesisHash(context.Context) (solana.Hash, error) { return solana.Hash(g), nil }

func (stubGenesis) Slot(context.Context, onchain.Commitment) (uint64, error) { return 1, nil }

func (stubGenesis) Status() []chain.EndpointStatus { return []chain.EndpointStatus{{Name: "a"}} }

// stubEndpoints returns err with the genesis hash, down with the slot, and the given status.
type stubEndpoints struct {
	stubGenesis
	err    error
	down   error
	status []chain.EndpointStatus
}

func (e stubEndpoints) GenesisHash(context.Context) (solana.Hash, error) {
	return solana.Hash(e.stubGenesis), e.err
}

func (e stubEndpoints) Slot(context.Context, onchain.Commitment) (uint64, error) { return 1, e.down }

func (e stubEndpoints) Status() []chain.EndpointStatus { return e.status }

// An endpoint of another chain is not used. The relay does not stop while other endpoints
// may serve the right chain.
func TestTheGateOpensForAnEndpointOfTheRightChain(t *testing.T) {
	t.Parallel()
	want := solana.Hash{1}
	foreign := &chain.GenesisError{Endpoint: "b", Got: solana.Hash{2}, Want: want}
	for name, tt := range map[string]struct {
		endpoints    stubEndpoints
		stops, opens bool
	}{
		"one of two is of another chain":        {stubEndpoints{stubGenesis: stubGenesis(want), err: foreign, status: []chain.EndpointStatus{{Name: "a"}, {Name: "b", Foreign: true}}}, false, true},
		"and the other of the two is down":      {stubEndpoints{stubGenesis: stubGenesis(want), err: foreign, down: onchain.ErrUnavailable, status: []chain.EndpointStatus{{Name: "a"}, {Name: "b", Foreign: true}}}, false, false},
		"all are of another chain":              {stubEndpoints{stubGenesis: stubGenesis(want), err: foreign, status: []chain.EndpointStatus{{Name: "b", Foreign: true}}}, true, false},
		"none answers, with a configured hash":  {stubEndpoints{stubGenesis: stubGenesis(want), down: onchain.ErrUnavailable, status: []chain.EndpointStatus{{Name: "a"}}}, false, false},
		"none answers, without one":             {stubEndpoints{err: onchain.ErrUnavailable, status: []chain.EndpointStatus{{Name: "a"}}}, false, false},
		"all answer and are of the right chain": {stubEndpoints{stubGenesis: stubGenesis(want), status: []chain.EndpointStatus{{Name: "a"}}}, false, true},
	} {
		g := newGenesisGate(tt.endpoints, want, [32]byte{1}, noPreparation)
		if _, err := g.check(t.Context()); errors.Is(err, errWrongChain) != tt.stops || g.open.Load() != tt.opens {
			t.Errorf("%s: error %v, gate open: %v; want errWrongChain: %v, open: %v", name, err, g.open.Load(), tt.stops, tt.opens)
		}
	}
}

// TestNothingOfARequestIsLogged sends marked values through every route and looks
// for them in the log and the metrics.
func TestNothingOfARequestIsLogged(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	s := newFixture(t, fixtureOptions{vk: vk})
	s.waitHealthy()
	in := f.inputs(s, 5*sol, solana.PublicKey{})
	s.deposit(&shieldpool.Call{Proof: f.prove(t, in), Inputs: in})
	to := newKey(t).PublicKey()
	in = f.inputs(s, -sol, to)
	in.Nullifiers[0], in.Commitments[0] = [32]byte([]byte("\x00canary-nullifier-canary-nullifi")), [32]byte([]byte("\x00canary-commitment-canary-commit"))
	body := submissionBody(f.prove(t, in), in.Bytes(), map[string]any{"recipient": to.String(), "encrypted_notes": []string{"Y2FuYXJ5LW5vdGU="}})
	if a := s.call(http.MethodPost, "/transact", body, "Idempotency-Key", "canary-key", "X-Forwarded-For", "203.0.113.77"); a.status != http.StatusOK {
		t.Fatalf("the withdrawal is answered %d %v, want 200", a.status, a.body)
	}
	s.call(http.MethodPost, "/transact", body)
	in.Commitments[1] = [32]byte{31: 5}
	s.call(http.MethodPost, "/transact", submissionBody(f.prove(t, in), in.Bytes(), map[string]any{"recipient": to.String()}))
	for _, r := range f.badRequests(t, s) {
		s.call(r.method, r.path, r.body, r.header...)
	}
	metrics := s.getText(s.operationsURL + contract.MetricsPath)
	for name, canary := range map[string]string{
		"recipient": to.String(), "note": "canary-note", "encoded note": "Y2FuYXJ5LW5vdGU", "idempotency key": "canary-key", "address": "203.0.113.77",
		"nullifier": "canary-nullifier", "nullifier in hex": "63616e6172792d6e756c6c", "commitment in hex": "63616e6172792d636f6d6d",
		"RPC credential": credential,
		"proof":          body["proof_bytes"].(string)[:40], "inputs": body["public_inputs"].(string)[:40],
	} {
		if strings.Contains(s.log.String(), canary) {
			t.Errorf("the log has the %s", name)
		}
		if strings.Contains(metrics, canary) {
			t.Errorf("the metrics have the %s", name)
		}
	}
	// Metrics without a sample after one withdrawal count events that did not happen.
	rare := []contract.Metric{
		contract.MetricSubmissionsFinalized, // the landing may not be final yet
		contract.MetricHeld, contract.MetricQueuePaused, contract.MetricSwapOldestFunded, contract.MetricRPCBreaker, contract.MetricRPCSkipped, contract.MetricRPCContradictions, contract.MetricCap, contract.MetricCapLeft,
		contract.MetricMaintenanceRuns, contract.MetricMaintenanceDuration, contract.MetricDeleted, contract.MetricLedgerEntries,
		contract.MetricRouterRequests, contract.MetricRouterDuration, contract.MetricRouterBreakerOpen,
		contract.MetricClientRequests, contract.MetricSignerAvailable, contract.MetricSignerDuration,
		contract.MetricSpent, contract.MetricSpentToday, contract.MetricLedgerReconciled, contract.MetricLedgerDifference, contract.MetricLedgerGaps,
	}
	for _, m := range contract.Metrics() {
		if !strings.Contains(metrics, "\n"+m.Name) && !slices.ContainsFunc(rare, func(r contract.Metric) bool { return r.Name == m.Name }) {
			t.Errorf("the metrics lack %s", m.Name)
		}
	}
}

func (s *fixture) getText(url string) string {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, url, nil)
	must(s.t, err)
	resp, err := http.DefaultClient.Do(req)
	must(s.t, err)
	defer func() { _ = resp.Body.Close() }()
	var b strings.Builder
	_, err = io.Copy(&b, resp.Body)
	must(s.t, err)
	return b.String()
}

// If a pod is killed before it has released its leases, these only expire later.
func TestTheHandoverFitsTheContract(t *testing.T) {
	t.Parallel()
	// Half a lease for running steps, one lease for their writes, one to release leases, and
	// the time for sends under way.
	if worst := 5*txmgr.DefaultTiming().Lease/2 + flushTimeout; worst > contract.HandOver {
		t.Errorf("the handover takes up to %s, want at most the contract's %s", worst, contract.HandOver)
	}
}

// A missing option is an error, not a panic.
func TestNewRejectsMissingOptions(t *testing.T) {
	t.Parallel()
	if _, err := New(t.Context(), Options{Log: slog.New(slog.DiscardHandler)}); err == nil {
		t.Error("New without a configuration succeeds, want an error")
	}
}
