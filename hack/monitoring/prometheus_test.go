package monitoring_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/relaypool/relaypool/hack/monitoring/dashboard"
)

// job is a scrape configuration with the targets that a service discovery would find.
type job struct {
	name, path  string
	honorLabels bool
	targets     []model.LabelSet
}

// server is Prometheus in this process: its scraping, storage and query engine.
type server struct {
	db     *tsdb.DB
	engine *promql.Engine
}

// startPrometheus scrapes until the test ends.
func startPrometheus(t *testing.T, interval time.Duration, jobs []job) *server {
	t.Helper()
	text := fmt.Sprintf("global: {scrape_interval: %[1]s, scrape_timeout: %[1]s}\nscrape_configs:\n", model.Duration(interval))
	found := map[string][]*targetgroup.Group{}
	for _, j := range jobs {
		text += fmt.Sprintf("- {job_name: %q, metrics_path: %q, honor_labels: %t}\n", j.name, j.path, j.honorLabels)
		found[j.name] = []*targetgroup.Group{{Source: j.name, Targets: j.targets}}
	}
	quiet := slog.New(slog.DiscardHandler)
	parsed, err := config.Load(text, quiet)
	if err != nil {
		t.Fatal(err)
	}
	settings := tsdb.DefaultOptions()
	settings.RetentionDuration = (24 * time.Hour).Milliseconds()
	db, err := tsdb.Open(t.TempDir(), quiet, nil, settings, nil)
	if err != nil {
		t.Fatal(err)
	}
	engine := promql.NewEngine(promql.EngineOpts{
		Logger: quiet, MaxSamples: 50_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute,
		NoStepSubqueryIntervalFn: func(int64) int64 { return (15 * time.Second).Milliseconds() }, Parser: parser.NewParser(parser.Options{}),
	})
	reload := scrape.Options{DiscoveryReloadInterval: model.Duration(100 * time.Millisecond), DiscoveryReloadOnStartup: true}
	scrapes, err := scrape.NewManager(&reload, quiet, nil, nil, db, prometheus.NewRegistry())
	if err := errors.Join(err, scrapes.ApplyConfig(parsed)); err != nil {
		t.Fatal(err)
	}
	sets, ended := make(chan map[string][]*targetgroup.Group, 1), make(chan error, 1)
	sets <- found
	go func() { ended <- scrapes.Run(sets) }()
	t.Cleanup(func() {
		scrapes.Stop()
		if err := errors.Join(<-ended, engine.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	})
	return &server{db, engine}
}

// query evaluates from one time to another. It leaves out NaN, such as a quantile of nothing,
// and series without any number.
func (s *server) query(ctx context.Context, expr string, from, to time.Time, step time.Duration) ([]dashboard.Series, error) {
	query, err := s.engine.NewRangeQuery(ctx, s.db, nil, expr, from, to, step)
	if err != nil {
		return nil, fmt.Errorf("query %s: %w", expr, err)
	}
	defer query.Close()
	matrix, err := query.Exec(ctx).Matrix()
	if err != nil {
		return nil, fmt.Errorf("query %s: %w", expr, err)
	}
	var all []dashboard.Series
	for _, m := range matrix {
		series, hasValue := dashboard.Series{Labels: map[string]string{}}, false
		m.Metric.Range(func(l labels.Label) { series.Labels[l.Name] = l.Value })
		for range to.Sub(from)/step + 1 {
			series.Values = append(series.Values, math.NaN())
		}
		for _, p := range m.Floats {
			if !math.IsNaN(p.F) && !math.IsInf(p.F, 0) {
				series.Values[(p.T-from.UnixMilli())/step.Milliseconds()], hasValue = p.F, true
			}
		}
		if hasValue {
			all = append(all, series)
		}
	}
	return all, nil
}
