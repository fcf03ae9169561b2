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

// submit makes the relay accept withdrawals without waiting, and returns the
// paths of their statuses.
func (f *forger) submit(s *stand, n int) (paths []string) {
	s.t.Helper()
	for range n {
		to := newKey(s.t).PublicKey()
		in := f.inputs(s, -sol/10, to)
		a := s.call(http.MethodPost, "/transact", fields(f.prove(s.t, in), in.Bytes(), map[string]any{"recipient": to.String()}), "Prefer", "respond-async")
		if a.status != http.StatusAccepted {
			s.t.Fatalf("a withdrawal is answered %d %v", a.status, a.body)
		}
		paths = append(paths, a.header.Get("Location"))
	}
	return paths
}

// fill puts notes into the pool.
func (f *forger) fill(s *stand) {
	s.t.Helper()
	in := f.inputs(s, 5*sol, solana.PublicKey{})
	s.deposit(&shieldpool.Call{Proof: f.prove(s.t, in), Inputs: in})
}

func (s *stand) completed(paths []string) {
	s.t.Helper()
	for _, path := range paths {
		eventually(s.t, "it is completed", func() bool {
			return s.call(http.MethodGet, path, nil).at("data", "status") == "completed"
		})
	}
}

func (s *stand) faults(endpoint string, rules ...fault.Rule) {
	s.t.Helper()
	must(s.t, s.chain.Endpoint(endpoint).SetFaults(rules))
}

// count reads one number from the database.
func (s *stand) count(sql string) (n int) {
	s.t.Helper()
	must(s.t, s.db.QueryRow(s.t.Context(), sql).Scan(&n))
	return n
}

// write writes content to a file and returns its path.
func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(folder(t), "file")
	must(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// metric reads the sum of a metric's samples whose labels contain the text.
func (s *stand) metric(m contract.Metric, labels string) (sum float64, found bool) {
	s.t.Helper()
	for line := range strings.Lines(s.text(s.ops + contract.MetricsPath)) {
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

// reportedBy waits until a check of /health says something.
func (s *stand) reportedBy(check string, words ...string) {
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

// TestHeartbeatsHaveAConnectionOfTheirOwn: while requests use every connection
// of the pool, the process keeps its leases.
func TestHeartbeatsHaveAConnectionOfTheirOwn(t *testing.T) {
	t.Parallel()
	_, vk := newForger(t)
	s := newStand(t, standOptions{vk: vk})
	s.ready()
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
	line, through := newProxy(t, database)
	// Slots are long enough for signed transactions to stay valid until the takeover.
	s := newStand(t, standOptions{vk: vk, databaseURL: database, slot: 200 * time.Millisecond})
	list := s.list("first")
	first := s.on(s.serve(s.configure(func(c *config.Serve) {
		c.RPC = config.RPC{EndpointsFile: write(t, list)}
		c.Database.URLFile = write(t, through)
	})))
	s.ready()
	first.ready()
	f.fill(s)

	s.faults("first", fault.Rule{Method: "sendTransaction", Drop: true})
	paths := f.submit(first, 5)
	eventually(t, "the first relay has signed them all", func() bool { return s.count("SELECT count(*) FROM attempts") == len(paths) })
	line.set(true)
	s.faults("first", fault.Rule{Cut: true})
	began := time.Now()
	s.completed(paths)
	t.Logf("taking over took %s", time.Since(began))
	if n := s.count("SELECT count(*) FROM attempts"); n != len(paths) {
		t.Errorf("%d transactions were signed for %d submissions: the heir did not send what was there", n, len(paths))
	}

	line.set(false)
	s.faults("first")
	first.ready()
	more := f.submit(first, 1)
	first.completed(more)
	if n := s.count("SELECT count(*) FROM submissions WHERE state <> 'completed'"); n != 0 {
		t.Errorf("%d submissions are not completed", n)
	}
	if n, _ := s.metric(contract.MetricLeases, `event="reaped"`); n < 1 {
		t.Error("no metric shows that a relay was gone")
	}
}

// TestADrainHandsOverAtOnce stops a relay whose leases would last longer than
// the test waits.
func TestADrainHandsOverAtOnce(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	s := newStand(t, standOptions{vk: vk, lease: 5 * time.Minute, slot: 200 * time.Millisecond})
	list := s.list("first")
	first := s.on(s.serve(s.configure(func(c *config.Serve) { c.RPC = config.RPC{EndpointsFile: write(t, list)} })))
	s.ready()
	first.ready()
	f.fill(s)
	s.faults("first", fault.Rule{Method: "sendTransaction", Drop: true})
	paths := f.submit(first, 5)
	eventually(t, "the first relay has signed them all", func() bool { return s.count("SELECT count(*) FROM attempts") == len(paths) })
	first.stop()
	began := time.Now()
	s.completed(paths) // it waits for less time than the lease lasts
	t.Logf("handing over took %s", time.Since(began))
	if n := s.count("SELECT count(*) FROM attempts"); n != len(paths) {
		t.Errorf("%d transactions were signed for %d submissions", n, len(paths))
	}
}

// TestSeveralPayersWithOneDry: the funded payers are used, health names the
// other, and it is used as soon as it is funded.
func TestSeveralPayersWithOneDry(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	s := newStand(t, standOptions{vk: vk, payers: 2, poor: true})
	dry, rich := s.payers[0].PublicKey(), s.payers[1].PublicKey()
	must(t, s.chain.Fund(rich, 10*sol))
	s.reportedBy("fee_payers", dry.String(), "holds 0 lamports", strconv.Itoa(sol/100), "send it funds")
	eventually(t, "the funds of the other are seen", func() bool { v, _ := s.metric(contract.MetricPayerUsable, rich.String()); return v == 1 })
	f.fill(s)
	s.completed(f.submit(s, 3))
	if n := s.count("SELECT count(DISTINCT fee_payer) FROM attempts"); n != 1 {
		t.Errorf("%d payers paid, want the one with funds", n)
	}
	if v, ok := s.metric(contract.MetricPayerUsable, dry.String()); !ok || v != 0 {
		t.Errorf("the dry payer's metric is %v, %v", v, ok)
	}
	must(t, s.chain.Fund(dry, 10*sol))
	s.ready()
	eventually(t, "the payer that was funded pays", func() bool {
		s.completed(f.submit(s, 1))
		return s.count("SELECT count(DISTINCT fee_payer) FROM attempts") == 2
	})
}

// TestHeldWorkGoesOnWhenAPayerIsFunded: accepted work waits for funds, is
// reported as held and not as due, and then continues by itself.
func TestHeldWorkGoesOnWhenAPayerIsFunded(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	// Enough for two transactions above the minimum.
	s := newStand(t, standOptions{vk: vk, poor: true, change: func(c *config.Serve) { c.FeePayerMinBalance, c.Concurrency = 2_000_000, 1 }})
	must(t, s.chain.Fund(s.payer.PublicKey(), 5_000_000))
	s.ready()
	f.fill(s)
	// The first uses the only worker, so that all are accepted before a second one is paid for.
	s.faults(localnet.DefaultEndpoint, fault.Rule{Method: "sendTransaction", Drop: true})
	paths := f.submit(s, 3)
	s.faults(localnet.DefaultEndpoint)
	s.reportedBy("queue", "1 for fee_payer_empty")
	if n, _ := s.metric(contract.MetricHeld, `reason="fee_payer_empty"`); n != 1 {
		t.Errorf("the metric has %v held submissions, want 1", n)
	}
	if n, ok := s.metric(contract.MetricBacklog, ""); !ok || n != 0 {
		t.Errorf("the backlog is %v: held submissions must not count for autoscaling", n)
	}
	if a := s.call(http.MethodGet, "/backlog", nil); a.at("held", "fee_payer_empty") != 1.0 || a.at("due_count") != 0.0 {
		t.Errorf("the backlog is %v", a.body)
	}
	if body := s.text(s.ops + contract.BacklogPath); !strings.Contains(body, `"held":{"fee_payer_empty":1}`) {
		t.Errorf("the operations port answers %s", body)
	}
	must(t, s.chain.Fund(s.payer.PublicKey(), sol))
	s.completed(paths)
	s.ready()
}

// TestASpendCapIsReachedAndLifted: the relay refuses new work until it runs with a
// higher cap.
func TestASpendCapIsReachedAndLifted(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	capped := func(lamports uint64) func(*config.Serve) {
		return func(c *config.Serve) { c.SpendCapHour = lamports }
	}
	s := newStand(t, standOptions{vk: vk, change: capped(2_500_000)})
	s.ready()
	f.fill(s)
	s.completed(f.submit(s, 1))
	to := newKey(t).PublicKey()
	in := f.inputs(s, -sol/10, to)
	body := fields(f.prove(t, in), in.Bytes(), map[string]any{"recipient": to.String()})
	wantRefused(t, s.call(http.MethodPost, "/transact", body), 503, "spend_cap_reached", "hour")
	s.reportedBy("spending", "--spend-cap-hour", "of 2500000 lamports")
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
	s.again(capped(25_000_000))
	s.ready()
	if a := s.call(http.MethodPost, "/transact", body); a.status != http.StatusOK {
		t.Errorf("with a higher cap it is answered %d %v", a.status, a.body)
	}
}

// TestTheCapsOfADay: each has its own limit, and the cap on transfers stops nothing else.
func TestTheCapsOfADay(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	s := newStand(t, standOptions{vk: vk, change: func(c *config.Serve) { c.SpendCapDay, c.SpendCapTransfersDay = sol/10, 2_000_000 }})
	s.ready()
	f.fill(s)
	transfer := func() *answer {
		in := f.inputs(s, 0, solana.PublicKey{})
		return s.call(http.MethodPost, "/transact", fields(f.prove(t, in), in.Bytes(), nil))
	}
	if a := transfer(); a.status != http.StatusOK {
		t.Fatalf("a transfer below the cap is answered %d %v", a.status, a.body)
	}
	wantRefused(t, transfer(), 503, "spend_cap_reached", "day on transfers")
	s.completed(f.submit(s, 1))
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
	s := newStand(t, standOptions{vk: vk, endpoints: []string{"one", "two", "three"}})
	s.ready()
	f.fill(s)
	s.faults("one", fault.Rule{Cut: true})
	s.completed(f.submit(s, 3))
	s.reportedBy("rpc", "one fails and is only probed", "connection")
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
	s.faults("one")
	s.ready()
	s.faults("two", fault.Rule{Cut: true})
	s.completed(f.submit(s, 3))
	s.faults("three", fault.Rule{Cut: true})
	waiting := f.submit(s, 3)
	s.reportedBy("queue", "3 for second_endpoint", "new work continues")
	s.faults("three")
	s.completed(waiting)
	for _, where := range []string{s.log.String(), s.text(s.ops + contract.MetricsPath)} {
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
	s := newStand(t, standOptions{vk: vk, payers: 2})
	s.ready()
	f.fill(s)
	s.completed(f.submit(s, 3))
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
		if !strings.Contains(s.text(s.ops+contract.MetricsPath), "\n"+m.Name) {
			t.Errorf("the metrics lack %s", m.Name)
		}
	}
	s.ready()

	in := f.inputs(s, -sol/10, newKey(t).PublicKey())
	to := newKey(t).PublicKey()
	in.ExtDataHash = shieldpool.ExtDataHash(shieldpool.Destination{Recipient: to})
	s.land(s.payer, &shieldpool.Call{Proof: f.prove(t, in), Inputs: in, Destination: shieldpool.Destination{Recipient: to}})
	s.reportedBy("ledger", "1 transactions", "signed by a fee payer and are not in the database", "relay ledger")
	if n, _ := s.metric(contract.MetricLedgerUnknown, ""); n != 1 {
		t.Errorf("%v signatures are unknown, want 1", n)
	}
}

// TestAPoolWithAnotherRing: the relay uses the program's own length of the root history
// when it is configured, and reports the length when it is not.
func TestAPoolWithAnotherRing(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	s := newStand(t, standOptions{vk: vk, ring: 12, change: func(c *config.Serve) { c.RootHistorySize = 12 }})
	s.ready()
	f.fill(s)
	s.completed(f.submit(s, 2))
	s.stop()
	s.again(func(c *config.Serve) { c.RootHistorySize = 11 })
	s.reportedBy("pool", "rootHistory")
}
