// Package prom runs Prometheus inside this process: its own scraping, storage and
// query engine, without its web pages.
package prom

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
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
	"go.yaml.in/yaml/v3"
)

// Options configure a Server. All but Targets are required.
type Options struct {
	// Folder is empty, for the storage.
	Folder string
	// Interval is between two scrapes of a target.
	Interval time.Duration
	Targets  []Target
}

// Target is one process that is scraped.
type Target struct {
	// Job is the name of its scrape configuration.
	Job string
	// Address is HOST:PORT, Path where its metrics are.
	Address, Path string
	// HonorLabels lets its own labels win over those of the target.
	HonorLabels bool
	// Labels are those that service discovery and a monitor give it.
	Labels map[string]string
}

// Server scrapes and answers queries.
type Server struct {
	db      *tsdb.DB
	scrapes *scrape.Manager
	engine  *promql.Engine
	ended   chan error
}

// retention is far beyond any run, most bounds a query.
const (
	retention = 24 * time.Hour
	most      = 50_000_000
	patience  = time.Minute
	lookback  = 5 * time.Minute
	subquery  = 15 * time.Second
)

// Start scrapes the targets from now on. Close ends it.
func Start(o Options) (_ *Server, err error) {
	if o.Folder == "" || o.Interval <= 0 {
		return nil, fmt.Errorf("start Prometheus: folder %q and interval %s, expected both", o.Folder, o.Interval)
	}
	s := &Server{ended: make(chan error, 1)}
	settings := tsdb.DefaultOptions()
	settings.RetentionDuration = retention.Milliseconds()
	quiet := slog.New(slog.DiscardHandler)
	if s.db, err = tsdb.Open(filepath.Clean(o.Folder), quiet, nil, settings, nil); err != nil {
		return nil, fmt.Errorf("start Prometheus: %w", err)
	}
	s.engine = promql.NewEngine(promql.EngineOpts{
		Logger: quiet, MaxSamples: most, Timeout: patience, LookbackDelta: lookback, EnableAtModifier: true, EnableNegativeOffset: true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return subquery.Milliseconds() }, Parser: parser.NewParser(parser.Options{}),
	})
	if err := s.scrape(o, quiet); err != nil {
		return nil, errors.Join(fmt.Errorf("start Prometheus: %w", err), s.db.Close())
	}
	return s, nil
}

func (s *Server) scrape(o Options, log *slog.Logger) (err error) {
	reload := scrape.Options{DiscoveryReloadInterval: model.Duration(100 * time.Millisecond), DiscoveryReloadOnStartup: true}
	if s.scrapes, err = scrape.NewManager(&reload, log, nil, nil, s.db, prometheus.NewRegistry()); err != nil {
		return err
	}
	text, groups, err := configuration(&o)
	if err != nil {
		return err
	}
	parsed, err := config.Load(string(text), log)
	if err != nil {
		return err
	}
	if err := s.scrapes.ApplyConfig(parsed); err != nil {
		return err
	}
	sets := make(chan map[string][]*targetgroup.Group, 1)
	sets <- groups
	go func() { s.ended <- s.scrapes.Run(sets) }()
	return nil
}

// configuration is Prometheus' own file, and what a service discovery would find.
func configuration(o *Options) (text []byte, groups map[string][]*targetgroup.Group, err error) {
	type scrapeConfig struct {
		Job         string `yaml:"job_name"`
		Path        string `yaml:"metrics_path"`
		HonorLabels bool   `yaml:"honor_labels"`
	}
	var file struct {
		Global struct {
			Interval string `yaml:"scrape_interval"`
			Timeout  string `yaml:"scrape_timeout"`
		} `yaml:"global"`
		Scrapes []scrapeConfig `yaml:"scrape_configs"`
	}
	interval := model.Duration(o.Interval).String()
	file.Global.Interval, file.Global.Timeout = interval, interval
	groups = map[string][]*targetgroup.Group{}
	for _, t := range o.Targets {
		if groups[t.Job] == nil {
			file.Scrapes = append(file.Scrapes, scrapeConfig{t.Job, t.Path, t.HonorLabels})
		}
		set := model.LabelSet{model.AddressLabel: model.LabelValue(t.Address)}
		for name, value := range t.Labels {
			set[model.LabelName(name)] = model.LabelValue(value)
		}
		groups[t.Job] = append(groups[t.Job], &targetgroup.Group{Source: t.Address, Targets: []model.LabelSet{set}})
	}
	text, err = yaml.Marshal(file)
	return text, groups, err
}

// Series is the values of one set of labels.
type Series struct {
	Labels map[string]string
	Points []Point
}

// Point is a value at a time.
type Point struct {
	At    time.Time
	Value float64
}

// Range evaluates a query from one time to another. Values that are no numbers,
// such as a quantile of nothing, are left out, and series without any.
func (s *Server) Range(ctx context.Context, expr string, from, to time.Time, step time.Duration) ([]Series, error) {
	query, err := s.engine.NewRangeQuery(ctx, s.db, nil, expr, from, to, step)
	if err != nil {
		return nil, fmt.Errorf("query %s: %w", expr, err)
	}
	defer query.Close()
	matrix, err := query.Exec(ctx).Matrix()
	if err != nil {
		return nil, fmt.Errorf("query %s: %w", expr, err)
	}
	var all []Series
	for _, m := range matrix {
		series := Series{Labels: map[string]string{}}
		m.Metric.Range(func(l labels.Label) { series.Labels[l.Name] = l.Value })
		for _, p := range m.Floats {
			if !math.IsNaN(p.F) && !math.IsInf(p.F, 0) {
				series.Points = append(series.Points, Point{time.UnixMilli(p.T), p.F})
			}
		}
		if len(series.Points) > 0 {
			all = append(all, series)
		}
	}
	return all, nil
}

// Close ends scraping and storage.
func (s *Server) Close() error {
	s.scrapes.Stop()
	return errors.Join(<-s.ended, s.engine.Close(), s.db.Close())
}
