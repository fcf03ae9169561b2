// Package live has a real Prometheus scrape real relays at work, as the PodMonitor
// of the operator has it done in a cluster.
package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/relaypool/relaypool/hack/monitoring/boards"
	"github.com/relaypool/relaypool/hack/monitoring/prom"
	"github.com/relaypool/relaypool/hack/monitoring/stage"
	"github.com/relaypool/relaypool/relay/contract"
)

// Options of a run. All are required.
type Options struct {
	// Root is the checkout, State an empty folder.
	Root, State string
	// Long is how long the fleet is loaded, Slot its chain's, Scrape the interval
	// between two scrapes, Rate the spends a second.
	Long, Slot, Scrape time.Duration
	Rate               float64
	Progress           io.Writer
	// Settled is asked after the load, until it is content or a minute and a half
	// have passed: some of what happened takes its time to be told. Nil waits for
	// nothing.
	Settled func(context.Context, *Run) bool
}

// Run is what was scraped.
type Run struct {
	Prometheus *prom.Server
	From, To   time.Time
	Events     []stage.Event
	// Step is between two points of a query over the run.
	Step time.Duration
	// Choice is the fleet's, with a rate interval that fits the run.
	Choice boards.Choice
}

// Close ends Prometheus.
func (r *Run) Close() error { return r.Prometheus.Close() }

// settleWithin bounds the wait for what Settled wants, settlePoll is between two looks.
const (
	settleWithin = 90 * time.Second
	settlePoll   = 2 * time.Second
)

// points is how many a query over a run has.
const points = 240

// Do runs a fleet and Prometheus from beginning to end. Close ends Prometheus;
// the fleet has ended by then.
func Do(ctx context.Context, o Options) (_ *Run, err error) {
	monitor, err := podMonitor(o.Root)
	if err != nil {
		return nil, err
	}
	fleet, err := stage.Start(ctx, stage.Options{Root: o.Root, State: o.State, Namespace: monitor.namespace, Pool: monitor.pool, Slot: o.Slot, Rate: o.Rate, Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, fleet.Close(context.WithoutCancel(ctx))) }()
	r := &Run{From: time.Now(), Choice: boards.Choice{Namespace: monitor.namespace, Pool: monitor.pool, RateInterval: (4 * o.Scrape).String()}}
	var targets []prom.Target
	for _, relay := range fleet.Relays() {
		targets = append(targets, monitor.target(relay))
	}
	// The ServiceMonitor honours labels too: the operator's name other namespaces.
	targets = append(targets, prom.Target{
		Job: "relaypool-operator", Address: fleet.Operator(), Path: monitor.path, HonorLabels: true,
		Labels: map[string]string{"namespace": contract.OperatorSystemNamespace, "pod": "relaypool-operator", "container": "operator"},
	})
	if r.Prometheus, err = prom.Start(prom.Options{Folder: filepath.Join(o.State, "prometheus"), Interval: o.Scrape, Targets: targets}); err != nil {
		return nil, err
	}
	var ledger sync.WaitGroup
	var ledgerErr error
	keeping, stop := context.WithCancel(ctx)
	ledger.Go(func() { ledgerErr = fleet.KeepLedger(keeping) })
	r.Events, err = fleet.Play(ctx, o.Long, func(ctx context.Context, expr string, since time.Time) bool {
		return r.seen(ctx, expr, since.Add(o.Scrape)) // what is found before then may have been scraped earlier
	})
	if err == nil {
		r.settle(ctx, &o)
	}
	stop()
	ledger.Wait()
	if err := errors.Join(err, ledgerErr); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// seen reports whether the query has had a value since then.
func (r *Run) seen(ctx context.Context, expr string, since time.Time) bool {
	now := time.Now()
	if now.Before(since) {
		return false
	}
	series, err := r.Prometheus.Range(ctx, expr, since, now, time.Second)
	return err == nil && len(series) > 0
}

// settle ends the run when all is told that is to be.
func (r *Run) settle(ctx context.Context, o *Options) {
	patience, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	poll := time.NewTicker(settlePoll)
	defer poll.Stop()
	for {
		r.To = time.Now()
		r.Step = max(o.Scrape, r.To.Sub(r.From)/points)
		if o.Settled == nil || o.Settled(ctx, r) {
			return
		}
		select {
		case <-patience.Done():
			return
		case <-poll.C:
		}
	}
}

// monitor is how a PodMonitor has pods scraped.
type monitor struct {
	namespace, pool, path, port string
	honorLabels                 bool
}

// podMonitor reads the one that the operator makes of a RelayPool.
func podMonitor(root string) (m monitor, err error) {
	file := filepath.Join(root, "controllers", "internal", "build", "testdata", "full.golden.yaml")
	content, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return m, fmt.Errorf("read a PodMonitor: %w", err)
	}
	for decoder := yaml.NewDecoder(bytes.NewReader(content)); ; {
		var o struct {
			Kind     string
			Metadata struct{ Namespace, Name string }
			Spec     struct {
				Endpoints []struct {
					Port, Path  string
					HonorLabels bool `yaml:"honorLabels"`
					Relabelings []struct {
						Target string `yaml:"targetLabel"`
					}
				} `yaml:"podMetricsEndpoints"`
			}
		}
		if err := decoder.Decode(&o); err != nil {
			return m, fmt.Errorf("find a PodMonitor in %s: %w", file, err)
		}
		if o.Kind != "PodMonitor" {
			continue
		}
		if len(o.Spec.Endpoints) != 1 || len(o.Spec.Endpoints[0].Relabelings) != 1 || o.Spec.Endpoints[0].Relabelings[0].Target != "pool" {
			return m, fmt.Errorf("the PodMonitor in %s has other endpoints than expected: one, which gives the label pool", file)
		}
		e := o.Spec.Endpoints[0]
		return monitor{o.Metadata.Namespace, o.Metadata.Name, e.Path, e.Port, e.HonorLabels}, nil
	}
}

// target has the labels that the Prometheus operator gives a pod's.
func (m *monitor) target(r stage.Relay) prom.Target {
	return prom.Target{
		Job: m.namespace + "/" + m.pool, Address: r.Operations, Path: m.path, HonorLabels: m.honorLabels,
		Labels: map[string]string{
			"namespace": m.namespace, "pod": m.pool + "-" + r.Name, "container": "relay", "endpoint": m.port, "pool": m.pool,
			"instance": r.Operations,
		},
	}
}

// Query evaluates a panel's query over the run. The windows that it has itself are
// for hours of a fleet's life, and are shortened to the run's.
func (r *Run) Query(ctx context.Context, expr string) ([]prom.Series, error) {
	long := r.To.Sub(r.From)
	window := func(share float64) string {
		return (time.Duration(share*float64(long)/float64(time.Second)+1) * time.Second).String()
	}
	expr = strings.NewReplacer(
		"[6h:5m]", "["+window(0.5)+":1s]", "[1h:1m]", "["+window(0.25)+":1s]", "[15m:1m]", "["+window(0.25)+":1s]",
		"[15m]", "["+window(0.25)+"]", "[5m:15s]", "["+window(0.15)+":1s]",
	).Replace(expr)
	return r.Prometheus.Range(ctx, boards.Fill(expr, r.Choice), r.From, r.To, r.Step)
}

// Missing says why a query finds nothing in a run.
func Missing(expr string) string {
	switch {
	case strings.Contains(expr, "kube_"):
		return "from kube-state-metrics, which this run had not"
	case strings.Contains(expr, contract.MetricOperatorRotation.Name), strings.Contains(expr, contract.MetricOperatorPaused.Name):
		return "no key was rotated, and nothing was paused"
	case strings.Contains(expr, "relaypool_operator_"):
		return "the operator served no external metrics in this run"
	}
	return "nothing of it happened"
}
