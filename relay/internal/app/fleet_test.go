package app

import (
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
			s.t.Fatalf("a withdrawal is answered %d %v", a.status, a.body)
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
		eventually(s.t, "it is completed", func() bool {
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

// waitHealthReport waits until a check of /health says something.
func (s *fixture) waitHealthReport(check string, words ...string) {
	s.t.Helper()
	var got any
	eventually(s.t, "health says what is wrong", func() bool {
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

// TestHeartbeatsDoNotNeedThePool: while requests use every connection
// of the pool, the process keeps its leases.
func TestHeartbeatsDoNotNeedThePool(t *testing.T) {
	t.Parallel()
	_, vk := newForger(t)
	s := newFixture(t, fixtureOptions{vk: vk})
	s.waitHealthy()
	for range s.app.db.Config().MaxConns {
		held, err := s.app.db.Acquire(t.Context())
		must(t, err)
		t.Cleanup(held.Release)
	}
	until := func() (at time.Time) {
		must(t, s.db.QueryRow(t.Context(), "SELECT until FROM workers").Scan(&at))
		return at
	}
	for range 3 {
		before := until()
		eventually(t, "the process beats", func() bool { return until().After(before) })
	}
}

// TestAnotherRelayTakesOverWithinSeconds cuts a relay off from chain and
// database, so that it can neither work nor release its leases. Another finishes
// the work with the same signed transactions, and the first, reconnected, does
// not interfere.
func TestAnotherRelayTakesOverWithinSeconds(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	database := pgtest.URL(t)
	line, through := newDatabaseProxy(t, database)
	// Slots are long enough for signed transactions to stay valid until the takeover.
	s := newFixture(t, fixtureOptions{vk: vk, databaseURL: database, slotDuration: 200 * time.Millisecond})
	list := s.endpointsFile("first")
	first := s.withRelay(s.runRelay(s.configure(func(c *config.Serve) {
		c.RPC = config.RPC{EndpointsFile: writeTempFile(t, list)}
		c.Database.URLFile = writeTempFile(t, through)
	})))
	s.waitHealthy()
	first.waitHealthy()
	f.depositNotes(s)

	s.setFaults("first", fault.Rule{Method: "sendTransaction", Drop: true})
	paths := f.submitWithdrawals(first, 5)
	eventually(t, "the first relay has signed them all", func() bool { return s.queryInt("SELECT count(*) FROM attempts") == len(paths) })
	line.setCut(true)
	s.setFaults("first", fault.Rule{Cut: true})
	began := time.Now()
	s.waitCompleted(paths)
	t.Logf("taking over took %s", time.Since(began))
	if n := s.queryInt("SELECT count(*) FROM attempts"); n != len(paths) {
		t.Errorf("%d transactions were signed for %d submissions: the heir did not send what was there", n, len(paths))
	}

	line.setCut(false)
	s.setFaults("first")
	first.waitHealthy()
	more := f.submitWithdrawals(first, 1)
	first.waitCompleted(more)
	if n := s.queryInt("SELECT count(*) FROM submissions WHERE state <> 'completed'"); n != 0 {
		t.Errorf("%d submissions are not completed", n)
	}
	if n, _ := s.metric(contract.MetricLeases, `event="reaped"`); n < 1 {
		t.Error("no metric shows that a relay was gone")
	}
}

// TestADrainReleasesLeasesAtOnce stops a relay whose leases would last longer than
// the test waits.
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
	s.waitCompleted(paths) // it waits for less time than the lease lasts
	t.Logf("handing over took %s", time.Since(began))
	if n := s.queryInt("SELECT count(*) FROM attempts"); n != len(paths) {
		t.Errorf("%d transactions were signed for %d submissions", n, len(paths))
	}
}

// TestADryPayerIsNotUsedUntilFunded: the funded payers are used, health names the
// other, and it is used as soon as it is funded.
func TestADryPayerIsNotUsedUntilFunded(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	s := newFixture(t, fixtureOptions{vk: vk, payerCount: 2, unfunded: true})
	dry, rich := s.payers[0].PublicKey(), s.payers[1].PublicKey()
	must(t, s.chain.Fund(rich, 10*sol))
	s.waitHealthReport("fee_payers", dry.String(), "holds 0 lamports", strconv.Itoa(sol/100), "send it funds")
	eventually(t, "the funds of the other are seen", func() bool { v, _ := s.metric(contract.MetricPayerUsable, rich.String()); return v == 1 })
	f.depositNotes(s)
	s.waitCompleted(f.submitWithdrawals(s, 3))
	if n := s.queryInt("SELECT count(DISTINCT fee_payer) FROM attempts"); n != 1 {
		t.Errorf("%d payers paid, want the one with funds", n)
	}
	if v, ok := s.metric(contract.MetricPayerUsable, dry.String()); !ok || v != 0 {
		t.Errorf("the dry payer's metric is %v, %v", v, ok)
	}
	must(t, s.chain.Fund(dry, 10*sol))
	s.waitHealthy()
	eventually(t, "the payer that was funded pays", func() bool {
		s.waitCompleted(f.submitWithdrawals(s, 1))
		return s.queryInt("SELECT count(DISTINCT fee_payer) FROM attempts") == 2
	})
}

// TestHeldWorkContinuesWhenAPayerIsFunded: accepted work waits for funds, is
// reported as held and not as due, and then continues by itself.
func TestHeldWorkContinuesWhenAPayerIsFunded(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	// Enough for two transactions above the minimum.
	s := newFixture(t, fixtureOptions{vk: vk, unfunded: true, changeConfig: func(c *config.Serve) { c.FeePayerMinBalance, c.Concurrency = 2_000_000, 1 }})
	must(t, s.chain.Fund(s.payer.PublicKey(), 5_000_000))
	s.waitHealthy()
	f.depositNotes(s)
	// The first uses the only worker, so that all are accepted before a second one is paid for.
	s.setFaults(localnet.DefaultEndpoint, fault.Rule{Method: "sendTransaction", Drop: true})
	paths := f.submitWithdrawals(s, 3)
	s.setFaults(localnet.DefaultEndpoint)
	s.waitHealthReport("queue", "1 for fee_payer_empty")
	if n, _ := s.metric(contract.MetricHeld, `reason="fee_payer_empty"`); n != 1 {
		t.Errorf("the metric has %v held submissions, want 1", n)
	}
	if n, ok := s.metric(contract.MetricBacklog, ""); !ok || n != 0 {
		t.Errorf("the backlog is %v: held submissions must not count for autoscaling", n)
	}
	if a := s.call(http.MethodGet, "/backlog", nil); a.at("held", "fee_payer_empty") != 1.0 || a.at("due_count") != 0.0 {
		t.Errorf("the backlog is %v", a.body)
	}
	if body := s.getText(s.operationsURL + contract.BacklogPath); !strings.Contains(body, `"held":{"fee_payer_empty":1}`) {
		t.Errorf("the operations port answers %s", body)
	}
	must(t, s.chain.Fund(s.payer.PublicKey(), sol))
	s.waitCompleted(paths)
	s.waitHealthy()
}

// TestASpendCapRefusesWorkUntilItIsRaised: the relay refuses new work until it runs with a
// higher cap.
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
	if left, ok := s.metric(contract.MetricCapLeft, `cap="hour"`); !ok || left <= 0 || left > 2_500_000-1_781_760 {
		t.Errorf("the cap leaves %v lamports, %v", left, ok)
	}
	if v, ok := s.metric(contract.MetricCap, `cap="hour"`); !ok || v != 2_500_000 {
		t.Errorf("the cap is %v, %v", v, ok)
	}
	if _, ok := s.metric(contract.MetricCap, `cap="day"`); ok {
		t.Error("a cap that is not set is reported")
	}
	s.stop()
	s.startRelay(capped(25_000_000))
	s.waitHealthy()
	if a := s.call(http.MethodPost, "/transact", body); a.status != http.StatusOK {
		t.Errorf("with a higher cap it is answered %d %v", a.status, a.body)
	}
}

// TestDailySpendCapsAreIndependent: each has its own limit, and the cap on transfers stops nothing else.
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
		t.Fatalf("a transfer below the cap is answered %d %v", a.status, a.body)
	}
	wantRefused(t, transfer(), 503, "spend_cap_reached", "day on transfers")
	s.waitCompleted(f.submitWithdrawals(s, 1))
	for cap, want := range map[string]float64{"day": sol / 10, "transfers_day": 2_000_000} {
		if got, _ := s.metric(contract.MetricCap, `cap="`+cap+`"`); got != want {
			t.Errorf("the cap %s is %v lamports, want %v", cap, got, want)
		}
	}
}

// TestAnEndpointThatFailsAndRecovers: the other two endpoints continue, and health and
// metrics name the dead one while it is dead. While two are dead, outcomes wait.
func TestAnEndpointThatFailsAndRecovers(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	s := newFixture(t, fixtureOptions{vk: vk, endpoints: []string{"one", "two", "three"}})
	s.waitHealthy()
	f.depositNotes(s)
	s.setFaults("one", fault.Rule{Cut: true})
	s.waitCompleted(f.submitWithdrawals(s, 3))
	s.waitHealthReport("rpc", "one fails and is only probed", "connection")
	if a := s.health(); a.at("checks", "chain", "status") != "ok" || a.body["status"] != "degraded" {
		t.Errorf("health is %v, want degraded with a chain that answers", a.body)
	}
	if v, ok := s.metric(contract.MetricRPCUp, `endpoint="one"`); !ok || v != 0 {
		t.Errorf("the dead endpoint's metric is %v, %v", v, ok)
	}
	if v, ok := s.metric(contract.MetricRPCUp, `endpoint="two"`); !ok || v != 1 {
		t.Errorf("the other endpoint's metric is %v, %v", v, ok)
	}
	if n, _ := s.metric(contract.MetricRPCBreaker, `endpoint="one",state="open"`); n < 1 {
		t.Error("no metric counts the breaker's change")
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

// TestTheLedgerAccountsForEveryLamport: metrics have all spending, and it adds
// up. A transaction that a stranger signs with a payer's key raises an alarm.
func TestTheLedgerAccountsForEveryLamport(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	s := newFixture(t, fixtureOptions{vk: vk, payerCount: 2})
	s.waitHealthy()
	f.depositNotes(s)
	s.waitCompleted(f.submitWithdrawals(s, 3))
	spent := func(labels string) float64 { v, _ := s.metric(contract.MetricSpent, labels); return v }
	eventually(t, "the ledger has all three", func() bool {
		return spent(`kind="withdrawal",cost="rent"`)+spent(`cost="rent",kind="withdrawal"`) == 3*1_781_760
	})
	if fee := spent(`cost="fee",kind="withdrawal"`); fee != 3*5000 {
		t.Errorf("the signatures cost %v lamports, want 15000", fee)
	}
	if today, _ := s.metric(contract.MetricSpentToday, ""); today != spent("") {
		t.Errorf("today %v lamports were spent, in all %v", today, spent(""))
	}
	if got, ok := s.metric(contract.MetricReceived, ""); !ok || got != 2*10*sol {
		t.Errorf("the payers received %v lamports, want what they were funded with", got)
	}
	if got, ok := s.metric(contract.MetricLedgerDifference, ""); !ok || got != 0 {
		t.Errorf("%v lamports are not accounted for (%v)", got, ok)
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

// TestAPoolWithAnotherRootHistorySize: the relay uses the program's own length of the root history
// when it is configured, and reports the length when it is not.
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
