package monitoring_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"

	"github.com/relaypool/relaypool/hack/monitoring/dashboard"
	"github.com/relaypool/relaypool/hack/monitoring/stage"
	"github.com/relaypool/relaypool/relay/contract"
)

var (
	pictures = flag.Bool("pictures", false, "draw docs/guides/monitoring-*.svg from the fleet")
	duration = flag.Duration("duration", 45*time.Second, "how long the fleet is loaded")
	rate     = flag.Float64("rate", 6, "new spends a second, on average")
)

// settleTimeout bounds the wait after the load for metrics that lag. points is the number of
// points of a query over a run.
const (
	settleTimeout = 90 * time.Second
	points        = 240
)

// excuse returns why queries for a metric find nothing in the run; empty if they should.
func excuse(m *metric) string {
	switch m.name {
	case contract.MetricOperatorRotation.Name, contract.MetricOperatorRotationStarted.Name, contract.MetricOperatorPaused.Name:
		return "no key was rotated, and nothing was paused"
	case contract.MetricOperatorExternalRequests.Name, contract.MetricOperatorBacklogRead.Name, contract.MetricOperatorCertificateExpiry.Name:
		return "the operator served no external metrics in this run"
	}
	if m.source == ofCluster {
		return "kube-state-metrics is not part of this run"
	}
	return ""
}

// rarePanels returns the panels whose events are so rare that a short run may have only one
// event, which gives no rate. Only the metrics of these panels are required.
func rarePanels() map[string]string {
	return map[string]string{"Time of maintenance, p95": "jobs run at most once a minute"}
}

// firingAlerts returns the alerts whose expressions are true at some time of the run.
func firingAlerts() []string {
	return []string{
		"RelaypoolSubmissionsHeld", "RelaypoolFeePayerUnusable", "RelaypoolSpendCapReached", "RelaypoolEndpointDown", "RelaypoolAllEndpointsDown",
		"RelaypoolAllFeePayersUnusable", "RelaypoolUnknownFeePayerSignature", "RelaypoolRouterRoutesRejected", "RelaypoolProcessDied",
	}
}

// A query with the right names can find nothing, because labels do not match or values
// are spelt otherwise. Only a real fleet reveals that.
func TestARealFleetIsOnTheDashboards(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs a fleet for a minute and more")
	}
	rules, _ := everyAlert(t)
	boards := dashboards(t)
	r := &run{metrics: loadMetrics(t)}
	r.play(t, func() bool {
		r.faults = nil
		r.dashboards(boards)
		r.alerts(rules)
		return len(r.faults) == 0
	})
	for _, f := range r.faults {
		t.Error(f)
	}
	if *pictures {
		for _, d := range boards {
			r.draw(t, d)
		}
	}
}

// run is a fleet that a Prometheus scrapes, with the scraped data.
type run struct {
	*server
	ctx             context.Context
	metrics         catalogue
	namespace, pool string
	from, to        time.Time
	scrape          time.Duration
	events          []stage.Event
	faults          []string
}

// play runs a fleet, with a real Prometheus that scrapes it with the settings of the operator's
// PodMonitor, until settled returns true.
func (r *run) play(t *testing.T, settled func() bool) {
	t.Helper()
	r.ctx = t.Context()
	slot := 100 * time.Millisecond
	if r.scrape = 2 * time.Second; *pictures {
		slot, r.scrape = 200*time.Millisecond, 3*time.Second
	}
	checkout, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	relays := r.podMonitor(t)
	fleet, err := stage.Start(r.ctx, stage.Options{Root: checkout, State: state(t), Namespace: r.namespace, Pool: r.pool, Slot: slot, Rate: *rate, Progress: lines{t}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := fleet.Close(context.WithoutCancel(r.ctx)); err != nil {
			t.Error(err)
		}
	}()
	for _, relay := range fleet.Relays() {
		relays.targets = append(relays.targets, model.LabelSet{
			model.AddressLabel: model.LabelValue(relay.Operations), "namespace": model.LabelValue(r.namespace), "pool": model.LabelValue(r.pool),
			"pod": model.LabelValue(relay.Name), "container": "relay", "endpoint": "operations", // some metrics have their own endpoint label
		})
	}
	// The ServiceMonitor honours labels too: the operator's metrics name other namespaces.
	operator := job{name: "relaypool-operator", path: relays.path, honorLabels: true, targets: []model.LabelSet{{
		model.AddressLabel: model.LabelValue(fleet.Operator()), "namespace": contract.OperatorSystemNamespace, "pod": "relaypool-operator", "container": "operator",
	}}}
	r.from = time.Now()
	r.server = startPrometheus(t, r.scrape, []job{relays, operator})
	ledgerCtx, stop := context.WithCancel(r.ctx)
	var ledger sync.WaitGroup
	var ledgerErr error
	ledger.Go(func() { ledgerErr = fleet.KeepLedger(ledgerCtx) })
	r.events, err = fleet.RunEvents(r.ctx, *duration, func(ctx context.Context, expr string, since time.Time) bool {
		since = since.Add(r.scrape) // earlier samples may have been scraped before since
		now := time.Now()
		if now.Before(since) {
			return false
		}
		series, err := r.query(ctx, expr, since, now, time.Second)
		return err == nil && len(series) > 0
	})
	for limit := time.Now().Add(settleTimeout); err == nil; time.Sleep(r.scrape) {
		if r.to = time.Now(); settled() || r.to.After(limit) {
			break
		}
	}
	stop()
	ledger.Wait()
	if err := errors.Join(err, ledgerErr); err != nil {
		t.Fatal(err)
	}
}

// podMonitor returns the scrape settings that the operator writes for a RelayPool's pods.
func (r *run) podMonitor(t *testing.T) job {
	t.Helper()
	found := objects(t, filepath.Join(root, "controllers/internal/build/testdata/full.golden.yaml"), "PodMonitor")
	if len(found) != 1 {
		t.Fatalf("%d PodMonitors, expected one", len(found))
	}
	var spec struct {
		Endpoints []struct {
			Path        string
			HonorLabels bool `yaml:"honorLabels"`
			Relabelings []struct {
				Target string `yaml:"targetLabel"`
			}
		} `yaml:"podMetricsEndpoints"`
	}
	if err := found[0].Spec.Decode(&spec); err != nil {
		t.Fatal(err)
	}
	if len(spec.Endpoints) != 1 || len(spec.Endpoints[0].Relabelings) != 1 || spec.Endpoints[0].Relabelings[0].Target != "pool" {
		t.Fatalf("the PodMonitor has the endpoints %+v, expected one that sets the label pool", spec.Endpoints)
	}
	r.namespace, r.pool = found[0].Metadata.Namespace, found[0].Metadata.Name
	return job{name: r.namespace + "/" + r.pool, path: spec.Endpoints[0].Path, honorLabels: spec.Endpoints[0].HonorLabels}
}

// step is the time between two points of a query over the run.
func (r *run) step() time.Duration {
	return max(r.scrape, r.to.Sub(r.from)/points).Truncate(time.Millisecond)
}

// ask evaluates a panel's query over the run. It shortens the query's windows, which are for
// hours of a fleet's life, to the length of the run.
func (r *run) ask(expr string) ([]dashboard.Series, error) {
	long := r.to.Sub(r.from)
	window := func(share float64) string { return fmt.Sprintf("%ds", int(share*long.Seconds())+1) }
	expr = strings.NewReplacer(
		"[6h:5m]", "["+window(0.5)+":1s]", "[1h:1m]", "["+window(0.25)+":1s]", "[15m:1m]", "["+window(0.25)+":1s]",
		"[15m]", "["+window(0.25)+"]", "[5m:15s]", "["+window(0.15)+":1s]",
	).Replace(expr)
	return r.query(r.ctx, r.filled(expr), r.from, r.to, r.step())
}

func (r *run) filled(expr string) string {
	return dashboard.Fill(expr, r.namespace, r.pool, model.Duration(4*r.scrape).String())
}

func (r *run) fault(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

// why returns why a query finds nothing in the run; empty if it should find something.
func (r *run) why(expr string) (uses []use, why string) {
	uses, _ = r.metrics.check(r.filled(expr))
	for i := range uses {
		if why = excuse(&uses[i].metric); why != "" {
			break
		}
	}
	return uses, why
}

// dashboards looks for panels without data.
func (r *run) dashboards(all []*dashboard.Dashboard) {
	for _, d := range all {
		for i := range d.Panels {
			for _, q := range d.Panels[i].Targets {
				r.panel(d.Title+", "+d.Panels[i].Title, d.Panels[i].Title, q.Expr)
			}
		}
	}
}

func (r *run) panel(where, title, expr string) {
	uses, why := r.why(expr)
	if slices.ContainsFunc(uses, func(u use) bool { return u.metric.name == contract.MetricOperatorChainUnavailableSince.Name }) {
		return // exposed only while a poll fails, which a short outage can miss
	}
	if _, once := rarePanels()[title]; once {
		for _, u := range uses {
			if series, err := r.ask(u.series); len(series) == 0 {
				r.fault("%s: a real fleet has no %s: %v", where, u.series, err)
			}
		}
		return
	}
	series, err := r.ask(expr)
	switch {
	case err != nil:
		r.fault("%s: %v", where, err)
	case len(series) == 0 && why == "":
		r.fault("%s: a real fleet has no data for %s", where, expr)
	case len(series) > 0 && why != "":
		r.fault("%s has data, although none is expected (%s): %s", where, why, expr)
	}
}

var fleetLabels = regexp.MustCompile(`namespace="[^"]*",pool="[^"]*"`)

// alerts checks that the alerts' metrics exist with the labels that they use, and
// that the alerts of firingAlerts are true at some time.
func (r *run) alerts(rules []rulefmt.Rule) {
	own := fmt.Sprintf("namespace=%q,pool=%q", r.namespace, r.pool)
	for i := range rules {
		alert, expr := rules[i].Alert, fleetLabels.ReplaceAllString(rules[i].Expr, own)
		uses, _ := r.metrics.check(expr)
		for _, u := range uses {
			if series, err := r.ask(u.series + "{" + own + "}"); err != nil || len(series) == 0 {
				r.fault("%s uses %s, which a real fleet does not have: %v", alert, u.series, err)
			}
		}
		series, err := r.ask(expr)
		if err != nil {
			r.fault("%s: %v", alert, err)
		}
		if slices.Contains(firingAlerts(), alert) && len(series) == 0 {
			r.fault("%s was never true, although its cause has happened: %s", alert, expr)
		}
	}
}

// draw writes a dashboard's picture of the run.
func (r *run) draw(t *testing.T, d *dashboard.Dashboard) {
	t.Helper()
	shown := &dashboard.Run{
		Description: fmt.Sprintf("Two relays on the local chain for %s; an operator that reads the same chain, without pods.", r.to.Sub(r.from).Round(time.Second)),
		Found:       map[string][]dashboard.Series{},
		Missing: func(expr string) string {
			if _, why := r.why(expr); why != "" {
				return why
			}
			return "no such event happened"
		},
	}
	for at := time.Duration(0); at <= r.to.Sub(r.from); at += r.step() {
		shown.Seconds = append(shown.Seconds, at.Seconds())
	}
	for _, e := range r.events {
		shown.Events = append(shown.Events, dashboard.Event{Seconds: e.At.Sub(r.from).Seconds(), What: e.What})
	}
	for i := range d.Panels {
		for _, q := range d.Panels[i].Targets {
			series, err := r.ask(q.Expr)
			if err != nil {
				t.Error(err)
			}
			shown.Found[q.Expr] = series
		}
	}
	file := filepath.Join(root, "docs", "guides", "monitoring-"+strings.TrimPrefix(d.UID, "relaypool-")+".svg")
	if err := os.WriteFile(file, d.Picture(shown), 0o644); err != nil {
		t.Error(err)
	}
}

// state makes a folder that Postgres can enter, because it may run as another user.
func state(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "relaypool-monitoring-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("logs are kept in %s", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// lines logs progress, which -v shows.
type lines struct{ t *testing.T }

func (l lines) Write(p []byte) (int, error) {
	l.t.Logf("%s", p)
	return len(p), nil
}
