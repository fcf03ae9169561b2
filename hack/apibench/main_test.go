package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/throughput/gauge"
)

// TestTwoRelayPoolsAreMeasured is the benchmark in little: a real operator on a
// real API server with a chain.
func TestTwoRelayPoolsAreMeasured(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs an API server, which -short does without")
	}
	root := filepath.Join("..", "..")
	s, err := parse([]string{"-pools", "2", "-window", "2s", "-calm", "1s", "-state", t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	s.checkInterval = 10
	s.key = filepath.Join(root, s.key)
	s.operator = filepath.Join(t.TempDir(), "operator")
	_ = os.Getenv("RELAYPOOL_SOURCES") // the cached result of a test that builds programs holds until this changes
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", s.operator, "./controllers/cmd/operator")
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the operator: %v\n%s", err, output)
	}
	results, err := measureAll(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	r := results[0]
	for name, v := range map[string]float64{
		"time to the fleets": r.fleets.Seconds(), "time to ready": r.ready.Seconds(), "processor time": r.busy.Seconds(), "processor time of the others": r.around.Seconds(),
		"resident": r.resident, "heap": r.heap, "time to look at all": r.restartTook.Seconds(), "reads at a restart": r.restart.reads,
	} {
		if v <= 0 {
			t.Errorf("%s is %g: want more than 0", name, v)
		}
	}
	if len(r.each) != 2 || r.relapsed != 0 {
		t.Errorf("%d were timed and %d were not ready any more at a restart: want 2 and 0", len(r.each), r.relapsed)
	}
	if r.hourly.writes != 0 || r.restart.writes != 0 {
		t.Errorf("%g writes an hour at rest and %g at a restart, of each: want none", r.hourly.writes, r.restart.writes)
	}
	// A finalizer, two Secrets, five objects of which the Deployment twice, statuses
	// and events; and the same by the API server's own count.
	if r.creation.writes < 12 || r.creation.writes > 30 {
		t.Errorf("%g writes at creation of each: want 12 to 30", r.creation.writes)
	}
	want := map[kindOfCall]float64{
		"POST secrets": 2, "APPLY configmaps": 1, "APPLY services": 1, "APPLY serviceaccounts": 1,
		"APPLY poddisruptionbudgets": 1, "PATCH relaypools": 1,
	}
	var deployments float64
	got := map[kindOfCall]float64{}
	var writes float64
	for _, k := range r.kinds {
		if _, ok := want[k.kind]; ok {
			got[k.kind] = k.each
		}
		if k.kind == "APPLY deployments" {
			deployments = k.each
		}
		if !strings.HasPrefix(string(k.kind), "GET ") {
			writes += k.each
		}
	}
	// Held, and let go; a pass whose cache is behind its own write may repeat it.
	if deployments < 2 || deployments > 3 {
		t.Errorf("Deployments were applied %g times each: want 2, or 3 on a machine that stalls", deployments)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls of each (-want +got):\n%s", diff)
	}
	if writes != r.creation.writes {
		t.Errorf("the API server counted %g writes of each, the operator %g", writes, r.creation.writes)
	}
	var table bytes.Buffer
	if err := write(&table, results, s); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"| RelayPools | 2 |", "| writes an hour at rest, each | 0.0 |", "POST secrets 2.0"} {
		if !strings.Contains(table.String(), line) {
			t.Errorf("%q is missing:\n%s", line, table.String())
		}
	}
}

// of is a result in which each figure is what so many RelayPools of one cost take.
func of(pools int, change func(r *result)) *result {
	n := float64(pools)
	r := &result{
		pools: pools, fleets: time.Duration(pools) * time.Second, ready: time.Duration(pools) * time.Second,
		creation: calls{16, 18}, hourly: calls{300, 0}, rpc: 61, busy: 50 * time.Millisecond,
		resident: (60 + n) * megabyte, heap: (10 + n) * megabyte, cores: 0.001 * n,
	}
	if change != nil {
		change(r)
	}
	return r
}

func TestGrowth(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		last *result
		want string
	}{
		"everything grows with the number":        {of(200, nil), "Growth: linear."},
		"calls of each rise":                      {of(200, func(r *result) { r.creation.writes = 40 }), "writes at creation, each: 2.2 times as much for one of 200 as for one of 10"},
		"the time grows faster":                   {of(200, func(r *result) { r.ready = 400 * time.Second }), "all are ready after: 2.0 times"},
		"memory of each further one rises":        {of(200, func(r *result) { r.resident = 1000 * megabyte }), "memory, resident: 5.9 times as much for one of 200 as for one of 50"},
		"the time grows faster on a busy machine": {of(200, func(r *result) { r.ready, r.others = 400*time.Second, 0.8 }), "Growth: linear. No figure of one RelayPool is more than half above that among fewer of them. Times were not compared"},
		"each takes less among many":              {of(200, func(r *result) { r.busy = time.Millisecond }), "Growth: linear."},
		"short times differ by chance alone":      {of(200, func(r *result) { r.restartTook = 4 * time.Second }), "Growth: linear."},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			if err := write(&b, []*result{of(10, nil), of(50, nil), tc.last}, &settings{window: time.Minute}); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(b.String(), tc.want) {
				t.Errorf("want %q in:\n%s", tc.want, b.String())
			}
		})
	}
}

func TestOnlyTheOperatorsCallsAreTold(t *testing.T) {
	t.Parallel()
	page := `apiserver_request_total{code="201",component="apiserver",resource="relaypools",subresource="",verb="POST",version="v1alpha1"} 4
apiserver_request_total{code="200",resource="deployments",subresource="status",verb="PUT"} 4
apiserver_request_total{code="200",resource="deployments",subresource="",verb="APPLY"} 8
apiserver_request_total{code="200",resource="relaypools",subresource="status",verb="PUT"} 11
apiserver_request_total{code="409",resource="relaypools",subresource="status",verb="PUT"} 1
apiserver_request_total{code="200",resource="pods",subresource="",verb="WATCH"} 1
apiserver_request_total{code="200",resource="secrets",subresource="",verb="LIST"} 1
apiserver_request_total{code="200",resource="leases",subresource="",verb="PUT"} 7
`
	want := []share{{"PUT relaypools/status", 3}, {"APPLY deployments", 2}}
	got := byKind(gauge.ReadMetrics([][]byte{[]byte(page)}), 4)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(share{})); diff != "" {
		t.Errorf("calls of each (-want +got):\n%s", diff)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"no RelayPools": {"-pools", "0"}, "a window below a second": {"-window", "1ms"}, "an argument that is no flag": {"10"},
	} {
		if _, err := parse(args); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	s, err := parse([]string{"-pools", "50,10"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{10, 50}, s.pools); diff != "" {
		t.Errorf("numbers of RelayPools (-want +got):\n%s", diff)
	}
}
