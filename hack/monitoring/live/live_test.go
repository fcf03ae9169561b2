package live_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/relaypool/relaypool/hack/monitoring/alerts"
	"github.com/relaypool/relaypool/hack/monitoring/boards"
	"github.com/relaypool/relaypool/hack/monitoring/grafana"
	"github.com/relaypool/relaypool/hack/monitoring/live"
	"github.com/relaypool/relaypool/hack/monitoring/query"
	"github.com/relaypool/relaypool/relay/contract"
)

const root = "../../.."

// excused are queries that find nothing in the run, by what they ask for.
func excused(uses []query.Use) (why string) {
	for _, u := range uses {
		switch u.Metric.Name {
		case contract.MetricOperatorRotation.Name, contract.MetricOperatorRotationAge.Name:
			return "no key is rotated"
		case contract.MetricOperatorPaused.Name:
			return "nothing is paused"
		case contract.MetricOperatorExternalRequests.Name, contract.MetricOperatorBacklogAge.Name, contract.MetricOperatorCertificateExpiry.Name:
			return "the operator serves no external metrics: no cluster asks"
		}
		if u.Metric.Source == query.KubeState {
			return "there is no cluster whose state kube-state-metrics could tell"
		}
	}
	return ""
}

// seldom are panels of what happens so seldom that a short run may see it once, of
// which there is no rate: their metrics have to be there.
func seldom() map[string]string {
	return map[string]string{"Time of upkeep, p95": "jobs run once a minute and less"}
}

// firing are the alerts whose conditions hold at some time of the run, by what
// happens in it.
func firing() []string {
	return []string{
		"RelaypoolWorkHeld", "RelaypoolPayerDry", "RelaypoolSpendCapReached", "RelaypoolEndpointDown", "RelaypoolEndpointsDown",
		"RelaypoolPayersDry", "RelaypoolUnknownSignature", "RelaypoolRouterHostile", "RelaypoolProcessDied",
	}
}

// A query that is right by its names can still find nothing, because labels do not
// match or a value is called otherwise: a real fleet tells.
func TestARealFleetIsOnTheDashboards(t *testing.T) {
	t.Parallel()
	absolute, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	run, err := live.Do(t.Context(), live.Options{
		Root: absolute, State: state(t), Long: 45 * time.Second, Slot: 100 * time.Millisecond, Scrape: 2 * time.Second, Rate: 6,
		Progress: lines{t},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := run.Close(); err != nil {
			t.Error(err)
		}
	})
	catalogue, err := query.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range boards.All() {
		for i := range b.Rows {
			for j := range b.Rows[i].Panels {
				tryPanel(t, run, catalogue, b, &b.Rows[i].Panels[j])
			}
		}
	}
	t.Run("alerts", func(t *testing.T) { tryAlerts(t, run, catalogue) })
}

func tryPanel(t *testing.T, run *live.Run, catalogue query.Catalogue, b *grafana.Board, p *grafana.Panel) {
	t.Helper()
	for _, q := range p.Queries {
		uses, _ := catalogue.Check(boards.Fill(q.Expr, run.Choice))
		series, err := run.Query(t.Context(), q.Expr)
		if err != nil {
			t.Errorf("%s, %s: %v", b.Title, p.Title, err)
			continue
		}
		if slices.ContainsFunc(uses, func(u query.Use) bool { return u.Metric.Name == contract.MetricOperatorChainUnavailable.Name }) {
			continue // told while the operator looks and nobody answers, which a short outage can end before
		}
		if _, once := seldom()[p.Title]; once {
			for _, u := range uses {
				if series, err = run.Query(t.Context(), u.Series); len(series) == 0 {
					t.Errorf("%s, %s: a real fleet has no %s: %v", b.Title, p.Title, u.Series, err)
				}
			}
			continue
		}
		switch why := excused(uses); {
		case len(series) == 0 && why == "":
			t.Errorf("%s, %s: a real fleet gives no data for %s", b.Title, p.Title, q.Expr)
		case len(series) > 0 && why != "":
			t.Errorf("%s, %s has data, and is excused because %s: %s", b.Title, p.Title, why, q.Expr)
		}
	}
}

var ofFleet = regexp.MustCompile(`namespace="[^"]*",pool="[^"]*"`)

// tryAlerts looks whether the alerts' metrics are there with the labels that they
// ask for, and whether those hold that should.
func tryAlerts(t *testing.T, run *live.Run, catalogue query.Catalogue) {
	fleet, _, err := alerts.Every(root)
	if err != nil {
		t.Fatal(err)
	}
	own := fmt.Sprintf("namespace=%q,pool=%q", run.Choice.Namespace, run.Choice.Pool)
	for _, r := range fleet {
		expr := ofFleet.ReplaceAllString(r.Expr, own)
		uses, _ := catalogue.Check(expr)
		for _, u := range uses {
			series, err := run.Query(t.Context(), u.Series+"{"+own+"}")
			if err != nil || len(series) == 0 {
				t.Errorf("%s asks for %s, which a real fleet does not have: %v", r.Alert, u.Series, err)
			}
		}
		series, err := run.Query(t.Context(), expr)
		if err != nil {
			t.Errorf("%s: %v", r.Alert, err)
		}
		if slices.Contains(firing(), r.Alert) && len(series) == 0 {
			t.Errorf("%s never held, and what it is for has happened: %s", r.Alert, expr)
		}
	}
}

// state is a folder that Postgres may enter, which may run as another user.
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

// lines shows progress with -v.
type lines struct{ t *testing.T }

var _ io.Writer = lines{}

func (l lines) Write(p []byte) (int, error) {
	l.t.Logf("%s", p)
	return len(p), nil
}
