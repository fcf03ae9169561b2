// Package pooltest runs the operator against a real API server and a local
// chain, for tests: the operator in this process, Kubernetes' own controllers
// for the objects that it makes, and a stand-in for the kubelet.
package pooltest

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/relaypool/relaypool/controllers/internal/manager"
	"github.com/relaypool/relaypool/controllers/internal/pool"
	"github.com/relaypool/relaypool/controllers/internal/servingcert"
	"github.com/relaypool/relaypool/controllers/internal/settings"
	"github.com/relaypool/relaypool/controllers/internal/tenancy"
)

// Image is the relay image of RelayPools that name none.
const Image = "relaypool.test/relay:test"

// Controllers returns the controllers of Kubernetes that a fleet needs, for
// apiserver.Options.
func Controllers() []string {
	return []string{"deployment-controller", "replicaset-controller", "job-controller", "garbage-collector-controller"}
}

// OperatorOptions change an operator.
type OperatorOptions struct {
	// Namespaces are the namespaces that the operator manages; empty means all.
	Namespaces []string
	// RefsInterval is the time between readings of Secrets; 0 is 300 ms.
	RefsInterval time.Duration
	// Backlog answers for pods; nil asks pods over HTTP.
	Backlog pool.BacklogReader
	// Log receives the operator's log; nil is the test's output.
	Log *slog.Logger
	// LeaseNamespace is the namespace of the Lease for leader election. If it is empty, the
	// operator leads at once.
	LeaseNamespace string
	// Workers is how many RelayPools are reconciled at once; 0 is 4.
	Workers int
	// Resync is the interval at which every RelayPool gets a pass even without a change; 0 is
	// 10 h.
	Resync time.Duration
	// Now is the operator's clock; nil is the machine's.
	Now func() time.Time
	// Chain is the HTTP client for RPC endpoints; nil makes the operator use its own client.
	Chain *http.Client
	// External configures external metrics. With an empty Listen, the operator does not serve
	// them. OperatorNamespace is the namespace in which the operator has its own objects.
	// Certificate changes the times of the serving certificate.
	External          settings.ExternalMetrics
	OperatorNamespace string
	Certificate       servingcert.Options
	// Tenants limits what RelayPools may request; the zero value allows all.
	Tenants tenancy.Policy
	// Traffic records the operator's requests to the API server; nil records nothing.
	Traffic *Traffic
}

// Operator is a running operator.
type Operator struct {
	// External serves external metrics; nil if the operator serves none.
	External *manager.External

	stop  context.CancelFunc
	ended chan error
}

// StartOperator runs an operator as its command would, until Stop or the end of
// the test.
func StartOperator(t testing.TB, config *rest.Config, o OperatorOptions) *Operator {
	t.Helper()
	if o.RefsInterval == 0 {
		o.RefsInterval = 300 * time.Millisecond
	}
	if o.Workers == 0 {
		o.Workers = 4
	}
	if o.Resync == 0 {
		o.Resync = 10 * time.Hour
	}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
	}
	cfg := &settings.Config{Rest: rest.CopyConfig(config)}
	// The client does not limit requests, as in the operator's own command.
	cfg.Rest.QPS = -1
	if o.Traffic != nil {
		cfg.Rest.Wrap(o.Traffic.Wrap)
	}
	cfg.RelayImage, cfg.Namespaces = Image, o.Namespaces
	cfg.LeaderElect, cfg.OperatorNamespace = o.LeaseNamespace != "", o.LeaseNamespace
	if cfg.External = o.External; o.OperatorNamespace != "" {
		cfg.OperatorNamespace = o.OperatorNamespace
	}
	cfg.Leading = settings.Leading{Name: "operator", Duration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond}
	cfg.Work = settings.Work{ConcurrentReconciles: o.Workers, CheckWorkers: 8, RefsInterval: o.RefsInterval, Resync: o.Resync}
	cfg.Listening = settings.Listening{MetricsListen: settings.None, HealthListen: settings.None}
	m, err := manager.New(manager.Options{Config: cfg, Log: o.Log})
	if err != nil {
		t.Fatalf("make the operator: %v", err)
	}
	op := &Operator{ended: make(chan error, 1)}
	poller, err := pool.NewPoller(orHTTPBacklog(o.Backlog), orSystemClock(o.Now))
	if err != nil {
		t.Fatalf("wire the operator: %v", err)
	}
	if o.External.Enabled() {
		op.External = &manager.External{Config: cfg, Log: o.Log, Poller: poller, Certificate: o.Certificate}
		if err := m.Add(op.External); err != nil {
			t.Fatalf("wire the operator: %v", err)
		}
	}
	err = m.Add(pool.Wiring{
		Settings: pool.Settings{Image: Image, Tenants: o.Tenants}, Log: o.Log, RefsInterval: o.RefsInterval, KeysInterval: o.RefsInterval,
		CheckWorkers: 8, Poller: poller, Now: o.Now, Chain: o.Chain,
	})
	if err != nil {
		t.Fatalf("wire the operator: %v", err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	op.stop = stop
	go func() { op.ended <- m.Run(ctx) }()
	t.Cleanup(func() { op.Stop(t) })
	return op
}

func orHTTPBacklog(r pool.BacklogReader) pool.BacklogReader {
	if r == nil {
		return pool.NewHTTPBacklog()
	}
	return r
}

func orSystemClock(now func() time.Time) func() time.Time {
	if now == nil {
		return time.Now
	}
	return now
}

// Stop ends the operator, and waits until it has ended.
func (o *Operator) Stop(t testing.TB) {
	t.Helper()
	o.stop()
	select {
	case err := <-o.ended:
		if err != nil {
			t.Errorf("the operator ended with: %v", err)
		}
		o.ended <- nil // for the next Stop
	case <-time.After(30 * time.Second):
		t.Error("the operator does not end")
	}
}
