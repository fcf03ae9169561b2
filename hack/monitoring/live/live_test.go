package live_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/rulefmt"

	"github.com/relaypool/relaypool/hack/monitoring/alerts"
	"github.com/relaypool/relaypool/hack/monitoring/boards"
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
	catalogue, err := query.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	fleet, _, err := alerts.Every(root)
	if err != nil {
		t.Fatal(err)
	}
	var faults []string
	run, err := live.Do(t.Context(), live.Options{
		Root: absolute, State: state(t), Long: 45 * time.Second, Slot: 100 * time.Millisecond, Scrape: 2 * time.Second, Rate: 6,
		Progress: lines{t},
		Settled: func(ctx context.Context, run *live.Run) bool {
			c := checker{ctx, run, catalogue, nil}
			c.boards()
			c.alerts(fleet)
			faults = c.faults
			return len(faults) == 0
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Close(); err != nil {
		t.Error(err)
	}
	for _, f := range faults {
		t.Error(f)
	}
}

// checker holds a run against dashboards and alerts.
type checker struct {
	ctx       context.Context
	run       *live.Run
	catalogue query.Catalogue
	faults    []string
}

func (c *checker) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

func (c *checker) boards() {
	for _, b := range boards.All() {
		for i := range b.Rows {
			for j := range b.Rows[i].Panels {
				for _, q := range b.Rows[i].Panels[j].Queries {
					c.query(b.Title+", "+b.Rows[i].Panels[j].Title, b.Rows[i].Panels[j].Title, q.Expr)
				}
			}
		}
	}
}

func (c *checker) query(where, title, expr string) {
	uses, _ := c.catalogue.Check(boards.Fill(expr, c.run.Choice))
	if slices.ContainsFunc(uses, func(u query.Use) bool { return u.Metric.Name == contract.MetricOperatorChainUnavailable.Name }) {
		return // told while the operator looks and nobody answers, which a short outage can end before
	}
	if _, once := seldom()[title]; once {
		for _, u := range uses {
			if series, err := c.run.Query(c.ctx, u.Series); len(series) == 0 {
				c.fault("%s: a real fleet has no %s: %v", where, u.Series, err)
			}
		}
		return
	}
	series, err := c.run.Query(c.ctx, expr)
	why := excused(uses)
	switch {
	case err != nil:
		c.fault("%s: %v", where, err)
	case len(series) == 0 && why == "":
		c.fault("%s: a real fleet gives no data for %s", where, expr)
	case len(series) > 0 && why != "":
		c.fault("%s has data, and is excused because %s: %s", where, why, expr)
	}
}

var ofFleet = regexp.MustCompile(`namespace="[^"]*",pool="[^"]*"`)

// alerts looks whether the alerts' metrics are there with the labels that they ask
// for, and whether those hold that should.
func (c *checker) alerts(fleet []rulefmt.Rule) {
	own := fmt.Sprintf("namespace=%q,pool=%q", c.run.Choice.Namespace, c.run.Choice.Pool)
	for i := range fleet {
		r := &fleet[i]
		expr := ofFleet.ReplaceAllString(r.Expr, own)
		uses, _ := c.catalogue.Check(expr)
		for _, u := range uses {
			if series, err := c.run.Query(c.ctx, u.Series+"{"+own+"}"); err != nil || len(series) == 0 {
				c.fault("%s asks for %s, which a real fleet does not have: %v", r.Alert, u.Series, err)
			}
		}
		series, err := c.run.Query(c.ctx, expr)
		if err != nil {
			c.fault("%s: %v", r.Alert, err)
		}
		if slices.Contains(firing(), r.Alert) && len(series) == 0 {
			c.fault("%s never held, and what it is for has happened: %s", r.Alert, expr)
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
