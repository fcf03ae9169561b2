package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/pool/pooltest"
	"github.com/relaypool/relaypool/hack/apiserver"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
	"github.com/relaypool/relaypool/hack/process"
	"github.com/relaypool/relaypool/hack/throughput/gauge"
	"github.com/relaypool/relaypool/relay/contract"
)

var (
	benchPools = flag.String("pools", "10,50,200", "`numbers` of RelayPools that BenchmarkOperator has, with commas between them")
	benchRest  = flag.Duration("rest", 5*time.Minute, "how long BenchmarkOperator counts requests while nothing changes; the default is the interval of the rarest reading, that of generated keys")
)

// BenchmarkOperator measures how soon an operator has made RelayPools ready, its memory and
// processor time, and its requests for each RelayPool. It counts requests to the API server at
// creation and after a restart, and to API server and chain while nothing changes. For each
// number of RelayPools, a new API server, Kubernetes' controllers and a new local chain run;
// pooltest's kubelet makes pods ready.
//
// make bench ARGS='-only operator' runs it.
func BenchmarkOperator(b *testing.B) {
	program := pooltest.BuildOperator(b)
	for word := range strings.SplitSeq(*benchPools, ",") {
		pools, err := strconv.Atoi(word)
		if err != nil || pools < 1 {
			b.Fatalf("-pools: %q is no number above zero", word)
		}
		b.Run("pools="+word, func(b *testing.B) {
			var figures map[string]float64
			for b.Loop() {
				figures = measure(b, program, pools, *benchRest, 15*time.Second)
			}
			for unit, value := range figures {
				b.ReportMetric(value, unit)
			}
			b.ReportMetric(0, "ns/op") // it would include starting and waiting
		})
	}
}

// This runs the benchmark briefly with few RelayPools, and checks its figures.
func TestWritesAreFewAtCreationAndNoneAtRest(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs an API server, which -short does without")
	}
	figures := measure(t, pooltest.BuildOperator(t), 2, 2*time.Second, time.Second)
	for unit, value := range figures {
		t.Logf("%s: %g", unit, value)
	}
	// Each RelayPool takes a finalizer, two Secrets, five objects, the Deployment twice,
	// statuses and events.
	if writes := figures["writes/pool"]; writes < 12 || writes > 30 {
		t.Errorf("%g writes for each new RelayPool, want 12 to 30", writes)
	}
	for _, unit := range []string{"writes/pool/h", "restart-writes/pool", "restart-not-ready"} {
		if figures[unit] != 0 {
			t.Errorf("%s is %g, want 0", unit, figures[unit])
		}
	}
	for _, unit := range []string{"ready-s", "reads/pool", "cpu-ms/pool", "restart-s", "restart-reads/pool", "MB", "heap-MB"} {
		if figures[unit] <= 0 {
			t.Errorf("%s is %g, want more than 0", unit, figures[unit])
		}
	}
}

// measure creates RelayPools, waits until they are ready, and restarts the operator.
func measure(t testing.TB, program string, pools int, rest, quietTime time.Duration) map[string]float64 {
	t.Helper()
	server := apiservertest.Start(t, apiserver.Options{Controllers: pooltest.Controllers()})
	config, err := server.Config()
	if err != nil {
		t.Fatal(err)
	}
	access, err := server.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	m := &measurement{Stand: pooltest.NewStand(t, config), pools: pools, figures: map[string]float64{}}
	if err := m.Chain.Initialize(); err != nil {
		t.Fatal(err)
	}
	pooltest.StartKubelet(t, config, m.Namespace, pooltest.KubeletOptions{})
	m.start(t, program, access)
	m.create(t, quietTime)
	m.rest(t, rest)
	m.restart(t, program, access, quietTime)
	return m.figures
}

// measurement has the state and the results of one measurement.
type measurement struct {
	*pooltest.Stand
	pools   int
	figures map[string]float64 // by their units

	operator *process.Process
	metrics  string // its URL
}

// start runs an operator that leads without a Lease: renewals would count as requests.
func (m *measurement) start(t testing.TB, program, access string) {
	t.Helper()
	address := freeAddress(t)
	m.metrics = "http://" + address + contract.MetricsPath
	operator, err := process.Start("operator", filepath.Join(t.TempDir(), "log"), program,
		"run", "--kubeconfig="+access, "--relay-image=registry.example/relay:1", "--namespaces="+m.Namespace,
		"--leader-elect=false", "--metrics-listen="+address, "--health-listen=none")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = operator.Kill() })
	m.operator = operator
	pooltest.Eventually(t, "the operator serves its metrics", func() error {
		_, err := m.tryRead(t.Context())
		return err
	})
}

// read returns the operator's metrics.
func (m *measurement) read(t testing.TB) gauge.Metrics {
	t.Helper()
	page, err := m.tryRead(t.Context())
	if err != nil {
		t.Fatal(errors.Join(err, m.operator.Ended()))
	}
	return page
}

func (m *measurement) tryRead(ctx context.Context) (gauge.Metrics, error) {
	page, err := get(ctx, m.metrics)
	return gauge.ReadMetrics([][]byte{[]byte(page)}), err
}

// since returns the increase of a page's metrics since an earlier reading.
func since(page, before gauge.Metrics) gauge.Metrics {
	out := make(gauge.Metrics, len(page))
	for series, v := range page {
		out[series] = v - before[series]
	}
	return out
}

// requests counts requests to the API server; writes change something or try to.
func requests(page gauge.Metrics) (reads, writes float64) {
	const name = "rest_client_requests_total"
	reads = page.Sum(name, `method="GET"`)
	return reads, page.Sum(name) - reads
}

// create makes the RelayPools, waits until all are ready and writes have stopped,
// and reports the cost.
func (m *measurement) create(t testing.TB, quietTime time.Duration) {
	t.Helper()
	before, began := m.read(t), time.Now()
	for i := range m.pools {
		m.Create(t, m.Pool(fmt.Sprintf("pool-%03d", i), func(p *v1alpha1.RelayPool) {
			p.Spec.FeePayers.Generate.Count = 2
			p.Spec.Pool.CheckIntervalSeconds = 0 // the default
		}))
	}
	funded := map[string]bool{}
	pooltest.Eventually(t, "all RelayPools are ready", func() error {
		waiting := 0
		for _, p := range m.list(t) {
			for _, payer := range p.Status.FeePayers {
				if !funded[payer.Address] {
					funded[payer.Address] = true
					if err := m.Chain.Fund(solana.MustPublicKeyFromBase58(payer.Address), 20*solana.LAMPORTS_PER_SOL); err != nil {
						t.Fatal(err)
					}
				}
			}
			if !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady) {
				waiting++
			}
		}
		if waiting > 0 {
			return fmt.Errorf("%d of %d are not ready: %w", waiting, m.pools, m.operator.Ended())
		}
		return nil
	})
	m.figures["ready-s"] = time.Since(began).Seconds()
	poolCount := float64(m.pools)
	reads, _ := requests(since(m.read(t), before))
	added := since(m.quiet(t, quietTime), before)
	_, writes := requests(added)
	m.figures["reads/pool"], m.figures["writes/pool"] = reads/poolCount, writes/poolCount
	m.figures["cpu-ms/pool"] = added.Sum("process_cpu_seconds_total") * 1000 / poolCount
}

func (m *measurement) list(t testing.TB) []v1alpha1.RelayPool {
	t.Helper()
	var list v1alpha1.RelayPoolList
	if err := m.Client.List(t.Context(), &list, ctrlclient.InNamespace(m.Namespace)); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// quiet waits until the operator has written nothing for some time, and returns its
// metrics from the start of that time.
func (m *measurement) quiet(t testing.TB, quietTime time.Duration) (last gauge.Metrics) {
	t.Helper()
	written, since := -1.0, time.Now()
	pooltest.Eventually(t, "nothing is written any more", func() error {
		page := m.read(t)
		if _, writes := requests(page); writes != written {
			written, since, last = writes, time.Now(), page
		}
		if time.Since(since) < quietTime {
			return errors.New("the operator still writes")
		}
		return nil
	})
	return last
}

// rest counts the operator's requests while nothing changes, and reads its metrics every 15
// seconds, as a Prometheus does.
func (m *measurement) rest(t testing.TB, window time.Duration) {
	t.Helper()
	calls := func() (sum float64) {
		for _, n := range m.Chain.Stats() {
			sum += float64(n)
		}
		return sum
	}
	before, callsBefore, began := m.read(t), calls(), time.Now()
	after := before
	least := func(unit, name string) {
		if v := after.Sum(name) / (1 << 20); m.figures[unit] == 0 || v < m.figures[unit] {
			m.figures[unit] = v
		}
	}
	for time.Since(began) < window {
		time.Sleep(min(15*time.Second, window-time.Since(began)))
		after = m.read(t)
		least("MB", "process_resident_memory_bytes")
		least("heap-MB", "go_memstats_heap_inuse_bytes")
	}
	elapsed := time.Since(began)
	hours := elapsed.Hours() * float64(m.pools)
	reads, writes := requests(since(after, before))
	m.figures["reads/pool/h"], m.figures["writes/pool/h"] = reads/hours, writes/hours
	m.figures["rpc/pool/h"] = (calls() - callsBefore) / hours
	m.figures["cpu-%"] = 100 * since(after, before).Sum("process_cpu_seconds_total") / elapsed.Seconds()
}

// restart restarts the operator, with all objects in place.
func (m *measurement) restart(t testing.TB, program, access string, quietTime time.Duration) {
	t.Helper()
	since := map[string]metav1.Time{}
	for _, p := range m.list(t) {
		since[p.Name] = meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady).LastTransitionTime
	}
	if err := m.operator.Stop(stopWithin); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	m.start(t, program, access)
	pooltest.Eventually(t, "a new operator has reconciled all RelayPools", func() error {
		page := m.read(t)
		if reconciled := page.Sum("controller_runtime_reconcile_total"); reconciled < float64(m.pools) || page.Sum("workqueue_depth") > 0 || page.Sum("controller_runtime_active_workers") > 0 {
			return fmt.Errorf("%g reconciliations so far", reconciled)
		}
		return nil
	})
	m.figures["restart-s"] = time.Since(began).Seconds()
	poolCount := float64(m.pools)
	reads, _ := requests(m.read(t))
	_, writes := requests(m.quiet(t, quietTime))
	m.figures["restart-reads/pool"], m.figures["restart-writes/pool"] = reads/poolCount, writes/poolCount
	relapsed := 0.0
	for _, p := range m.list(t) {
		if at := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady).LastTransitionTime; !at.Time.Equal(since[p.Name].Time) {
			relapsed++
		}
	}
	m.figures["restart-not-ready"] = relapsed
}
