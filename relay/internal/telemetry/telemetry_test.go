package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/swap"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

func TestNewLog(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		level, format string
		wantJSON      bool
		wantLines     int // of four, one at each level
	}{
		"debug logs all levels":           {"debug", "json", true, 4},
		"info omits debug":                {"info", "json", true, 3},
		"warn omits info":                 {"warn", "text", false, 2},
		"error omits warn":                {"error", "text", false, 1},
		"auto is JSON without a terminal": {"info", "auto", true, 3},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			log, err := NewLog(&out, tc.level, tc.format)
			if err != nil {
				t.Fatal(err)
			}
			log.Debug("at debug")
			log.Info("at info", "n", 1)
			log.Warn("at warn")
			log.Error("at error")
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if len(lines) != tc.wantLines {
				t.Errorf("%d lines, want %d:\n%s", len(lines), tc.wantLines, out.String())
			}
			if isJSON := json.Valid([]byte(lines[0])); isJSON != tc.wantJSON {
				t.Errorf("JSON is %t, want %t: %s", isJSON, tc.wantJSON, lines[0])
			}
		})
	}
}

func TestAutoLogFormatIsJSONForAFile(t *testing.T) {
	t.Parallel()
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	log, err := NewLog(f, "info", "auto")
	if err != nil {
		t.Fatal(err)
	}
	log.Info("at info")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(f.Name()); err != nil || !json.Valid(content) {
		t.Errorf("the log is %s (%v), want JSON", content, err)
	}
}

func TestNewLogRejectsUnknownSettings(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ level, format, want string }{
		"an unknown level":  {"loud", "json", "expected debug, info, warn or error"},
		"an unknown format": {"info", "xml", "expected auto, json or text"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := NewLog(io.Discard, tc.level, tc.format); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestMetricsCountEvents(t *testing.T) {
	t.Parallel()
	m := NewMetrics(Build{Version: "1.2.3", Revision: "abc"})
	m.Request("POST", contract.TransactPath, 200, 20*time.Millisecond)
	m.Request("POST", contract.TransactPath, 409, 20*time.Millisecond)
	m.Outcome(shieldpool.KindTransfer, "completed")
	m.Outcome(shieldpool.KindTransfer, "finalized")
	m.Attempt("signed")
	m.Attempt("rebroadcast")
	m.Attempt("rebroadcast")
	m.RPCCalled("a", "getSlot", "ok", time.Millisecond)
	m.RPCCalled("b", "getSlot", "timeout", time.Millisecond)
	m.Lease("claimed", 3)
	m.Lease("reaped", 4)
	m.Lease("lapsed", 1)
	m.Poll(200, false)
	m.Poll(1, true)
	m.BreakerStateChanged("a", "open")
	m.RebroadcastSkipped("a")
	m.EndpointContradicted("a")
	m.NotificationReceived("b")
	m.MaintenanceRan("ledger", time.Millisecond, nil)
	m.MaintenanceRan("ledger", time.Millisecond, errors.New("no"))
	m.RowsDeleted("submissions", 1000)
	m.TreeObserved(42, nil)
	m.Stage("verify", 900*time.Microsecond)
	want := `
# HELP relaypool_attempt_events_total ` + contract.MetricAttempts.Help + `
# TYPE relaypool_attempt_events_total counter
relaypool_attempt_events_total{event="adopted"} 0
relaypool_attempt_events_total{event="early"} 0
relaypool_attempt_events_total{event="expired"} 0
relaypool_attempt_events_total{event="failed_on_chain"} 0
relaypool_attempt_events_total{event="held"} 0
relaypool_attempt_events_total{event="panic"} 0
relaypool_attempt_events_total{event="rebroadcast"} 2
relaypool_attempt_events_total{event="refused"} 0
relaypool_attempt_events_total{event="reopened"} 0
relaypool_attempt_events_total{event="signed"} 1
# HELP relaypool_http_requests_total ` + contract.MetricHTTPRequests.Help + `
# TYPE relaypool_http_requests_total counter
relaypool_http_requests_total{method="POST",route="/transact",status="200"} 1
relaypool_http_requests_total{method="POST",route="/transact",status="409"} 1
# HELP relaypool_lease_events_total ` + contract.MetricLeases.Help + `
# TYPE relaypool_lease_events_total counter
relaypool_lease_events_total{event="claimed"} 3
relaypool_lease_events_total{event="handed_over"} 0
relaypool_lease_events_total{event="lost"} 0
relaypool_lease_events_total{event="orphaned"} 0
relaypool_lease_events_total{event="reaped"} 4
# HELP relaypool_lease_lapses_total ` + contract.MetricLeaseLapses.Help + `
# TYPE relaypool_lease_lapses_total counter
relaypool_lease_lapses_total 1
# HELP relaypool_rpc_breaker_changes_total ` + contract.MetricRPCBreaker.Help + `
# TYPE relaypool_rpc_breaker_changes_total counter
relaypool_rpc_breaker_changes_total{endpoint="a",state="open"} 1
# HELP relaypool_rows_deleted_total ` + contract.MetricDeleted.Help + `
# TYPE relaypool_rows_deleted_total counter
relaypool_rows_deleted_total{table="submissions"} 1000
# HELP relaypool_rpc_calls_total ` + contract.MetricRPCCalls.Help + `
# TYPE relaypool_rpc_calls_total counter
relaypool_rpc_calls_total{class="ok",endpoint="a",method="getSlot"} 1
relaypool_rpc_calls_total{class="timeout",endpoint="b",method="getSlot"} 1
# HELP relaypool_rpc_contradictions_total ` + contract.MetricRPCContradictions.Help + `
# TYPE relaypool_rpc_contradictions_total counter
relaypool_rpc_contradictions_total{endpoint="a"} 1
# HELP relaypool_rpc_notifications_total ` + contract.MetricRPCNotifications.Help + `
# TYPE relaypool_rpc_notifications_total counter
relaypool_rpc_notifications_total{endpoint="b"} 1
# HELP relaypool_rpc_rebroadcasts_skipped_total ` + contract.MetricRPCSkipped.Help + `
# TYPE relaypool_rpc_rebroadcasts_skipped_total counter
relaypool_rpc_rebroadcasts_skipped_total{endpoint="a"} 1
# HELP relaypool_submissions_total ` + contract.MetricSubmissions.Help + `
# TYPE relaypool_submissions_total counter
relaypool_submissions_total{kind="transfer",outcome="completed"} 1
# HELP relaypool_submissions_finalized_total ` + contract.MetricSubmissionsFinalized.Help + `
# TYPE relaypool_submissions_finalized_total counter
relaypool_submissions_finalized_total{kind="transfer"} 1
# HELP relaypool_tracker_polls_total ` + contract.MetricPolls.Help + `
# TYPE relaypool_tracker_polls_total counter
relaypool_tracker_polls_total{cause="notification"} 1
relaypool_tracker_polls_total{cause="slot"} 1
# HELP relaypool_maintenance_runs_total ` + contract.MetricMaintenanceRuns.Help + `
# TYPE relaypool_maintenance_runs_total counter
relaypool_maintenance_runs_total{job="ledger",outcome="done"} 1
relaypool_maintenance_runs_total{job="ledger",outcome="failed"} 1
relaypool_maintenance_runs_total{job="retention",outcome="done"} 0
relaypool_maintenance_runs_total{job="retention",outcome="failed"} 0
# HELP relaypool_build_info ` + contract.MetricBuildInfo.Help + `
# TYPE relaypool_build_info gauge
relaypool_build_info{revision="abc",version="1.2.3"} 1
# HELP relaypool_tree_leaves ` + contract.MetricTreeLeaves.Help + `
# TYPE relaypool_tree_leaves gauge
relaypool_tree_leaves 42
# HELP relaypool_tree_self_check ` + contract.MetricTreeCheck.Help + `
# TYPE relaypool_tree_self_check gauge
relaypool_tree_self_check 1
`
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+)`).FindAllStringSubmatch(want, -1) {
		names = append(names, m[1])
	}
	err := testutil.GatherAndCompare(m.Registry, strings.NewReader(want), names...)
	if err != nil {
		t.Error(err)
	}
	for name, histograms := range map[string]int{
		"stages": testutil.CollectAndCount(m.stages), "HTTP": testutil.CollectAndCount(m.httpDuration), "polls": testutil.CollectAndCount(m.pollSize),
		"maintenance": testutil.CollectAndCount(m.maintenanceDuration),
	} {
		if histograms != 1 {
			t.Errorf("%s: %d histograms, want 1", name, histograms)
		}
	}
}

// A skipped call is counted and has no duration. An outcome that never happened has the
// value zero.
func TestSwapAndRouterMetrics(t *testing.T) {
	t.Parallel()
	m := NewMetrics(Build{})
	m.Outcome(submission.KindSwapExecution, "refunded")
	m.Outcome(submission.KindSwapExecution, "finalized") // not counted: the swap was counted when it was refunded
	m.RouterCalled("preferred", "quote", "ok", time.Millisecond)
	m.RouterCalled("preferred", "quote", "rate_limited", time.Millisecond)
	m.RouterSkipped("preferred", "quote", "breaker_open")
	m.RouteRejected("program")
	want := `
# HELP relaypool_swaps_ended_total ` + contract.MetricSwapsEnded.Help + `
# TYPE relaypool_swaps_ended_total counter
relaypool_swaps_ended_total{outcome="executed"} 0
relaypool_swaps_ended_total{outcome="refunded"} 1
# HELP relaypool_router_requests_total ` + contract.MetricRouterRequests.Help + `
# TYPE relaypool_router_requests_total counter
relaypool_router_requests_total{call="quote",outcome="breaker_open",router="preferred"} 1
relaypool_router_requests_total{call="quote",outcome="ok",router="preferred"} 1
relaypool_router_requests_total{call="quote",outcome="rate_limited",router="preferred"} 1
`
	if err := testutil.GatherAndCompare(m.Registry, strings.NewReader(want), contract.MetricSwapsEnded.Name, contract.MetricRouterRequests.Name,
		contract.MetricSubmissions.Name, contract.MetricSubmissionsFinalized.Name); err != nil {
		t.Error(err)
	}
	if got := testutil.ToFloat64(m.routesRejected.WithLabelValues("program")); got != 1 {
		t.Errorf("%v rejected routes, want 1", got)
	}
	if got, want := testutil.CollectAndCount(m.routesRejected), len(swap.RejectedReasons()); got != want {
		t.Errorf("%d series of rejected routes, want %d", got, want)
	}
	families, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == contract.MetricRouterDuration.Name && f.GetMetric()[0].GetHistogram().GetSampleCount() != 2 {
			t.Errorf("%d durations, want 2, for the calls that were not skipped", f.GetMetric()[0].GetHistogram().GetSampleCount())
		}
	}
}

func TestUnknownGaugesHaveNoSample(t *testing.T) {
	t.Parallel()
	m := NewMetrics(Build{})
	value, known := 0.0, false
	m.RegisterGaugeFunc(contract.MetricBacklog, func() (float64, bool) { return value, known })
	count := func(name string) int {
		n, err := testutil.GatherAndCount(m.Registry, name)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, c := range []contract.Metric{contract.MetricBacklog, contract.MetricTreeLeaves, contract.MetricTreeCheck} {
		if count(c.Name) != 0 {
			t.Errorf("%s has a sample, want none while its value is unknown", c.Name)
		}
	}
	value, known = 7, true
	m.TreeObserved(0, errors.New("contradiction"))
	for _, c := range []contract.Metric{contract.MetricBacklog, contract.MetricTreeLeaves, contract.MetricTreeCheck} {
		if count(c.Name) != 1 {
			t.Errorf("%s has no sample although its value is known", c.Name)
		}
	}
	if got := testutil.ToFloat64(m.treeCheck); got != 0 {
		t.Errorf("the self-check metric of a contradictory tree is %v, want 0", got)
	}
}

func TestScrapedMetricsAreCountersIfNamedTotal(t *testing.T) {
	t.Parallel()
	m := NewMetrics(Build{})
	m.RegisterVecFunc(contract.MetricHeld, func(sample Sample) {
		sample(2, "fee_payer_empty")
		sample(0, "chain_unavailable")
	})
	m.RegisterVecFunc(contract.MetricSpent, func(sample Sample) { sample(1_781_760, "transfer", "rent") })
	m.RegisterVecFunc(contract.MetricCap, func(Sample) {}) // no known value
	want := `
# HELP relaypool_held_submissions ` + contract.MetricHeld.Help + `
# TYPE relaypool_held_submissions gauge
relaypool_held_submissions{reason="chain_unavailable"} 0
relaypool_held_submissions{reason="fee_payer_empty"} 2
# HELP relaypool_spent_lamports_total ` + contract.MetricSpent.Help + `
# TYPE relaypool_spent_lamports_total counter
relaypool_spent_lamports_total{cost="rent",kind="transfer"} 1.78176e+06
`
	if err := testutil.GatherAndCompare(m.Registry, strings.NewReader(want),
		contract.MetricHeld.Name, contract.MetricSpent.Name, contract.MetricCap.Name); err != nil {
		t.Error(err)
	}
}

func TestOperationsHandler(t *testing.T) {
	t.Parallel()
	var unready error
	m := NewMetrics(Build{Version: "1.2.3"})
	server := httptest.NewServer(m.OperationsHandler(func() error { return unready },
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "the backlog") })))
	defer server.Close()
	get := func(method, path string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	draining := errors.New("draining: this relay is stopping")
	tests := []struct {
		name, method, path string
		unready            error
		wantStatus         int
		wantBody           string
	}{
		{"a ready relay is ready", http.MethodGet, contract.ReadinessPath, nil, 200, "ok"},
		{"a draining relay is not ready, with the reason", http.MethodGet, contract.ReadinessPath, draining, 503, "draining"},
		{"a draining relay is alive", http.MethodGet, contract.LivenessPath, draining, 200, "ok"},
		{"a probe may use HEAD", http.MethodHead, contract.ReadinessPath, draining, 503, ""},
		{"the relay's metrics are served", http.MethodGet, contract.MetricsPath, draining, 200, `relaypool_build_info{revision="",version="1.2.3"} 1`},
		{"metrics of the process are served", http.MethodGet, contract.MetricsPath, nil, 200, "process_resident_memory_bytes"},
		{"metrics of the runtime are served", http.MethodGet, contract.MetricsPath, nil, 200, "go_goroutines"},
		{"the backlog is served during a drain", http.MethodGet, contract.BacklogPath, draining, 200, "the backlog"},
		{"other paths are not found", http.MethodGet, "/", nil, 404, ""},
		{"POST is not allowed", http.MethodPost, contract.LivenessPath, nil, 405, ""},
	}
	for _, tc := range tests {
		unready = tc.unready
		if status, body := get(tc.method, tc.path); status != tc.wantStatus || !strings.Contains(body, tc.wantBody) {
			t.Errorf("%s: got %d %.200s, want %d with %q", tc.name, status, body, tc.wantStatus, tc.wantBody)
		}
	}
}
