package app

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/internal/pgtest"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// submitWithdrawals makes the relay accept withdrawals without waiting, and returns the
// paths of their statuses.
func (f *forger) submitWithdrawals(s *fixture, n int) (paths []string) {
	s.t.Helper()
	for range n {
		to := newKey(s.t).PublicKey()
		in := f.inputs(s, -sol/10, to)
		a := s.call(http.MethodPost, "/transact", submissionBody(f.prove(s.t, in), in.Bytes(), map[string]any{"recipient": to.String()}), "Prefer", "respond-async")
		if a.status != http.StatusAccepted {
			s.t.Fatalf("a withdrawal is answered %d %v, want 202", a.status, a.body)
		}
		paths = append(paths, a.header.Get("Location"))
	}
	return paths
}

// depositNotes puts notes into the pool.
func (f *forger) depositNotes(s *fixture) {
	s.t.Helper()
	in := f.inputs(s, 5*sol, solana.PublicKey{})
	s.deposit(&shieldpool.Call{Proof: f.prove(s.t, in), Inputs: in})
}

func (s *fixture) waitCompleted(paths []string) {
	s.t.Helper()
	for _, path := range paths {
		eventually(s.t, "the submission is completed", func() bool {
			return s.call(http.MethodGet, path, nil).at("data", "status") == "completed"
		})
	}
}

func (s *fixture) setFaults(endpoint string, rules ...fault.Rule) {
	s.t.Helper()
	must(s.t, s.chain.Endpoint(endpoint).SetFaults(rules))
}

// queryInt reads one number from the database.
func (s *fixture) queryInt(sql string) (n int) {
	s.t.Helper()
	must(s.t, s.db.QueryRow(s.t.Context(), sql).Scan(&n))
	return n
}

// writeTempFile writes content to a file and returns its path.
func writeTempFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(tempDir(t), "file")
	must(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// metric reads the sum of a metric's samples whose labels contain the text.
func (s *fixture) metric(m contract.Metric, labels string) (sum float64, found bool) {
	s.t.Helper()
	for line := range strings.Lines(s.getText(s.operationsURL + contract.MetricsPath)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if base, _, _ := strings.Cut(name, "{"); base != m.Name || !strings.Contains(name, labels) {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		must(s.t, err)
		sum, found = sum+v, true
	}
	return sum, found
}

// waitHealthReport waits until the message of a check of /health contains all words.
func (s *fixture) waitHealthReport(check string, words ...string) {
	s.t.Helper()
	var got any
	eventually(s.t, fmt.Sprintf("check %s of /health reports %q", check, words), func() bool {
		got = s.health().at("checks", check, "message")
		message, _ := got.(string)
		for _, w := range words {
			if !strings.Contains(message, w) {
				return false
			}
		}
		return true
	})
}

// While requests use every connection of the pool, the process still sends heartbeats and
// so keeps its leases.
func TestHeartbeatsDoNotNeedThePool(t *testing.T) {
	t.Parallel()
	_, vk := newForger(t)
	s := newFixture(t, fixtureOptions{vk: vk})
	s.waitHealthy()
	for range s.app.db.Config().MaxConns {
		connection, err := s.app.db.Acquire(t.Context())
		must(t, err)
		t.Cleanup(connection.Release)
	}
	expiry := func() (at time.Time) {
		must(t, s.db.QueryRow(t.Context(), "SELECT until FROM workers").Scan(&at))
		return at
	}
	for range 3 {
		before := expiry()
		eventually(t, "the process sends a heartbeat", func() bool { return expiry().After(before) })
	}
}

// TestAnotherRelayTakesOverWithinSeconds cuts a relay off from chain and database, so
// that it can neither work nor release its leases. Another relay finishes the work with
// the same signed transactions. The first relay is reconnected and does not interfere.
func TestAnotherRelayTakesOverWithinSeconds(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	database := pgtest.URL(t)
	proxy, proxiedURL := newDatabaseProxy(t, database)
	// Slots are long enough for signed transactions to stay valid until the takeover.
	s := newFixture(t, fixtureOptions{vk: vk, databaseURL: database, slotDuration: 200 * time.Millisecond})
	list := s.endpointsFile("first")
	first := s.withRelay(s.runRelay(s.configure(func(c *config.Serve) {
		c.RPC = config.RPC{EndpointsFile: writeTempFile(t, list)}
		c.Database.URLFile = writeTempFile(t, proxiedURL)
	})))
	s.waitHealthy()
	first.waitHealthy()
	f.depositNotes(s)

	s.setFaults("first", fault.Rule{Method: "sendTransaction", Drop: true})
	paths := f.submitWithdrawals(first, 5)
	eventually(t, "the first relay has signed them all", func() bool { return s.queryInt("SELECT count(*) FROM attempts") == len(paths) })
	proxy.setCut(true)
	s.setFaults("first", fault.Rule{Cut: true})
	began := time.Now()
	s.waitCompleted(paths)
	t.Logf("taking over took %s", time.Since(began))
	if n := s.queryInt("SELECT count(*) FROM attempts"); n != len(paths) {
		t.Errorf("%d transactions were signed for %d submissions, want one each: the new owner sends the existing ones", n, len(paths))
	}

	proxy.setCut(false)
	s.setFaults("first")
	first.waitHealthy()
	more := f.submitWithdrawals(first, 1)
	first.waitCompleted(more)
	if n := s.queryInt("SELECT count(*) FROM submissions WHERE state <> 'completed'"); n != 0 {
		t.Errorf("%d submissions are not completed, want 0", n)
	}
	if n, _ := s.metric(contract.MetricLeases, `event="reaped"`); n < 1 {
		t.Errorf("the metric has %v leases freed from a dead process, want at least 1", n)
	}
}

// TestADrainReleasesLeasesAtOnce stops a relay whose leases last longer than the test
// waits.
func TestADrainReleasesLeasesAtOnce(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	s := newFixture(t, fixtureOptions{vk: vk, lease: 5 * time.Minute, slotDuration: 200 * time.Millisecond})
	list := s.endpointsFile("first")
	first := s.withRelay(s.runRelay(s.configure(func(c *config.Serve) { c.RPC = config.RPC{EndpointsFile: writeTempFile(t, list)} })))
	s.waitHealthy()
	first.waitHealthy()
	f.depositNotes(s)
	s.setFaults("first", fault.Rule{Method: "sendTransaction", Drop: true})
	paths := f.submitWithdrawals(first, 5)
	eventually(t, "the first relay has signed them all", func() bool { return s.queryInt("SELECT count(*) FROM attempts") == len(paths) })
	first.stop()
	began := time.Now()
	s.waitCompleted(paths) // its timeout is shorter than the lease
	t.Logf("handing over took %s", time.Since(began))
	if n := s.queryInt("SELECT count(*) FROM attempts"); n != len(paths) {
		t.Errorf("%d transactions were signed for %d submissions, want one each", n, len(paths))
	}
}

// The relay uses the funded payer, and health names the dry one. The dry payer is used
// as soon as it is funded.
func TestADryPayerIsNotUsedUntilFunded(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	s := newFixture(t, fixtureOptions{vk: vk, payerCount: 2, unfunded: true})
	dry, funded := s.payers[0].PublicKey(), s.payers[1].PublicKey()
	must(t, s.chain.Fund(funded, 10*sol))
	s.waitHealthReport("fee_payers", dry.String(), "holds 0 lamports", strconv.Itoa(sol/100), "send it funds")
	eventually(t, "the funded payer is usable", func() bool { v, _ := s.metric(contract.MetricPayerUsable, funded.String()); return v == 1 })
	f.depositNotes(s)
	s.waitCompleted(f.submitWithdrawals(s, 3))
	if n := s.queryInt("SELECT count(DISTINCT fee_payer) FROM attempts"); n != 1 {
		t.Errorf("%d payers paid, want the one with funds", n)
	}
	if v, ok := s.metric(contract.MetricPayerUsable, dry.String()); !ok || v != 0 {
		t.Errorf("the dry payer's metric is %v (present: %v), want 0", v, ok)
	}
	must(t, s.chain.Fund(dry, 10*sol))
	s.waitHealthy()
	eventually(t, "the newly funded payer pays too", func() bool {
		s.waitCompleted(f.submitWithdrawals(s, 1))
		return s.queryInt("SELECT count(DISTINCT fee_payer) FROM attempts") == 2
	})
}

// Accepted submissions that wait for funds are reported as held and not as due. They
// continue without another request when the payer is funded.
func TestHeldWorkContinuesWhenAPayerIsFunded(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	// Enough for two transactions above the minimum.
	s := newFixture(t, fixtureOptions{vk: vk, unfunded: true, changeConfig: func(c *config.Serve) { c.FeePayerMinBalance, c.Concurrency = 2_000_000, 1 }})
	must(t, s.chain.Fund(s.payer.PublicKey(), 4_000_000))
	s.waitHealthy()
	f.depositNotes(s)
	// The first submission occupies the only worker, so that all are accepted before the funds are spent.
	s.setFaults(localnet.DefaultEndpoint, fault.Rule{Method: "sendTransaction", Drop: true})
	paths := f.submitWithdrawals(s, 3)
	s.setFaults(localnet.DefaultEndpoint)
	s.waitHealthReport("queue", "1 for fee_payer_empty")
	if n, _ := s.metric(contract.MetricHeld, `reason="fee_payer_empty"`); n != 1 {
		t.Errorf("the metric has %v held submissions, want 1", n)
	}
	if n, ok := s.metric(contract.MetricBacklog, ""); !ok || n != 0 {
		t.Errorf("the backlog metric is %v, want 0: held submissions do not count for autoscaling", n)
	}
	if a := s.call(http.MethodGet, "/backlog", nil); a.at("held", "fee_payer_empty") != 1.0 || a.at("due_count") != 0.0 {
		t.Errorf("the backlog is %v, want 1 held for fee_payer_empty and 0 due", a.body)
	}
	if body := s.getText(s.operationsURL + contract.BacklogPath); !strings.Contains(body, `"held":{"fee_payer_empty":1}`) {
		t.Errorf("the operations port answers %s, want 1 held for fee_payer_empty", body)
	}
	must(t, s.chain.Fund(s.payer.PublicKey(), sol))
	s.waitCompleted(paths)
	s.waitHealthy()
}

// The relay refuses new work when the cap is reached, until it runs with a higher cap.
func TestASpendCapRefusesWorkUntilItIsRaised(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	capped := func(lamports uint64) func(*config.Serve) {
		return func(c *config.Serve) { c.SpendCapHour = lamports }
	}
	s := newFixture(t, fixtureOptions{vk: vk, changeConfig: capped(2_500_000)})
	s.waitHealthy()
	f.depositNotes(s)
	s.waitCompleted(f.submitWithdrawals(s, 1))
	to := newKey(t).PublicKey()
	in := f.inputs(s, -sol/10, to)
	body := submissionBody(f.prove(t, in), in.Bytes(), map[string]any{"recipient": to.String()})
	wantRefused(t, s.call(http.MethodPost, "/transact", body), 503, "spend_cap_reached", "hour")
	s.waitHealthReport("spending", "--spend-cap-hour", "of 2500000 lamports")
	// Until the sum is read again, the withdrawal counts in it and by its allowance.
	eventually(t, "the metric has the cap less at least one rent left", func() bool {
		left, ok := s.metric(contract.MetricCapLeft, `cap="hour"`)
		return ok && left > 0 && left <= 2_500_000-2*650_240
	})
	if v, ok := s.metric(contract.MetricCap, `cap="hour"`); !ok || v != 2_500_000 {
		t.Errorf("the metric of the cap is %v (present: %v), want 2500000", v, ok)
	}
	if _, ok := s.metric(contract.MetricCap, `cap="day"`); ok {
		t.Error("the metric has a sample of the cap that is not set, want none")
	}
	s.stop()
	s.startRelay(capped(25_000_000))
	s.waitHealthy()
	if a := s.call(http.MethodPost, "/transact", body); a.status != http.StatusOK {
		t.Errorf("with a higher cap the withdrawal is answered %d %v, want 200", a.status, a.body)
	}
}

// Each cap has its own limit, and the cap on transfers refuses only transfers.
func TestDailySpendCapsAreIndependent(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	s := newFixture(t, fixtureOptions{vk: vk, changeConfig: func(c *config.Serve) { c.SpendCapDay, c.SpendCapTransfersDay = sol/10, 2_000_000 }})
	s.waitHealthy()
	f.depositNotes(s)
	transfer := func() *answer {
		in := f.inputs(s, 0, solana.PublicKey{})
		return s.call(http.MethodPost, "/transact", submissionBody(f.prove(t, in), in.Bytes(), nil))
	}
	if a := transfer(); a.status != http.StatusOK {
		t.Fatalf("a transfer below the cap is answered %d %v, want 200", a.status, a.body)
	}
	wantRefused(t, transfer(), 503, "spend_cap_reached", "day on transfers")
	s.waitCompleted(f.submitWithdrawals(s, 1))
	for name, want := range map[string]float64{"day": sol / 10, "transfers_day": 2_000_000} {
		if got, _ := s.metric(contract.MetricCap, `cap="`+name+`"`); got != want {
			t.Errorf("the cap %s is %v lamports, want %v", name, got, want)
		}
	}
}

// While one of three endpoints is dead, submissions complete, and health and metrics name
// the dead endpoint. While two are dead, submissions wait.
func TestAnEndpointThatFailsAndRecovers(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	s := newFixture(t, fixtureOptions{vk: vk, endpoints: []string{"one", "two", "three"}})
	s.waitHealthy()
	f.depositNotes(s)
	s.setFaults("one", fault.Rule{Cut: true})
	s.waitCompleted(f.submitWithdrawals(s, 3))
	s.waitHealthReport("rpc", "one keeps failing, so the relay sends it nothing but probes", "connection")
	if a := s.health(); a.at("checks", "chain", "status") != "ok" || a.body["status"] != "degraded" {
		t.Errorf("health is %v, want degraded with a chain that answers", a.body)
	}
	if v, ok := s.metric(contract.MetricRPCUp, `endpoint="one"`); !ok || v != 0 {
		t.Errorf("the dead endpoint's metric is %v (present: %v), want 0", v, ok)
	}
	if v, ok := s.metric(contract.MetricRPCUp, `endpoint="two"`); !ok || v != 1 {
		t.Errorf("the live endpoint's metric is %v (present: %v), want 1", v, ok)
	}
	if n, _ := s.metric(contract.MetricRPCBreaker, `endpoint="one",state="open"`); n < 1 {
		t.Errorf("the metric has %v changes of the breaker to open, want at least 1", n)
	}
	s.setFaults("one")
	s.waitHealthy()
	s.setFaults("two", fault.Rule{Cut: true})
	s.waitCompleted(f.submitWithdrawals(s, 3))
	s.setFaults("three", fault.Rule{Cut: true})
	waiting := f.submitWithdrawals(s, 3)
	s.waitHealthReport("queue", "3 for second_endpoint", "new work continues")
	s.setFaults("three")
	s.waitCompleted(waiting)
	for _, where := range []string{s.log.String(), s.getText(s.operationsURL + contract.MetricsPath)} {
		if strings.Contains(where, credential) {
			t.Error("a URL's credential is shown")
		}
	}
}

// The metrics contain all spending, and the sums match. Health reports a transaction that
// somebody else signs with a payer's key.
func TestTheLedgerAccountsForEveryLamport(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	s := newFixture(t, fixtureOptions{vk: vk, payerCount: 2})
	s.waitHealthy()
	f.depositNotes(s)
	s.waitCompleted(f.submitWithdrawals(s, 3))
	spent := func(labels string) float64 { v, _ := s.metric(contract.MetricSpent, labels); return v }
	eventually(t, "the ledger has all three withdrawals", func() bool {
		return spent(`kind="withdrawal",cost="rent"`)+spent(`cost="rent",kind="withdrawal"`) == 3*2*650_240
	})
	if fee := spent(`cost="fee",kind="withdrawal"`); fee != 3*5000 {
		t.Errorf("the signatures cost %v lamports, want 15000", fee)
	}
	if today, _ := s.metric(contract.MetricSpentToday, ""); today != spent("") {
		t.Errorf("%v lamports were spent today, want the total, %v", today, spent(""))
	}
	if got, ok := s.metric(contract.MetricReceived, ""); !ok || got != 2*10*sol {
		t.Errorf("the payers received %v lamports, want their funds, %v", got, 2*10*sol)
	}
	if got, ok := s.metric(contract.MetricLedgerDifference, ""); !ok || got != 0 {
		t.Errorf("%v lamports are not accounted for (present: %v), want 0", got, ok)
	}
	for _, m := range []contract.Metric{contract.MetricMaintenanceRuns, contract.MetricMaintenanceDuration, contract.MetricLedgerEntries, contract.MetricLedgerReconciled, contract.MetricLedgerGaps} {
		if !strings.Contains(s.getText(s.operationsURL+contract.MetricsPath), "\n"+m.Name) {
			t.Errorf("the metrics lack %s", m.Name)
		}
	}
	s.waitHealthy()

	in := f.inputs(s, -sol/10, newKey(t).PublicKey())
	to := newKey(t).PublicKey()
	in.ExtDataHash = shieldpool.ExtDataHash(shieldpool.Destination{Recipient: to})
	s.sendWithoutRelay(s.payer, &shieldpool.Call{Proof: f.prove(t, in), Inputs: in, Destination: shieldpool.Destination{Recipient: to}})
	s.waitHealthReport("ledger", "1 transactions", "signed by a fee payer and are not in the database", "relay ledger")
	if n, _ := s.metric(contract.MetricLedgerUnknown, ""); n != 1 {
		t.Errorf("%v signatures are unknown, want 1", n)
	}
}

// The relay works with a program of another root history size if it is configured with this
// size. Otherwise health reports the difference.
func TestAPoolWithAnotherRootHistorySize(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	s := newFixture(t, fixtureOptions{vk: vk, rootHistory: 12, changeConfig: func(c *config.Serve) { c.RootHistorySize = 12 }})
	s.waitHealthy()
	f.depositNotes(s)
	s.waitCompleted(f.submitWithdrawals(s, 2))
	s.stop()
	s.startRelay(func(c *config.Serve) { c.RootHistorySize = 11 })
	s.waitHealthReport("pool", "rootHistory")
}
