package gauge_test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/throughput/gauge"
)

const page = `# HELP a_total Things, by kind.
# TYPE a_total counter
a_total{kind="x",way="in"} 3
a_total{kind="y",way="in"} 4
a_totally 100
b 1.5e+03
broken
`

func TestReadMetricsAddsPages(t *testing.T) {
	t.Parallel()
	m := gauge.ReadMetrics([][]byte{[]byte(page), []byte(page)})
	tests := map[string]struct {
		name   string
		labels []string
		want   float64
	}{
		"all series of a name, but not of a longer name": {name: "a_total", want: 14},
		"series with a label":                            {name: "a_total", labels: []string{`kind="x"`}, want: 6},
		"series with both labels":                        {name: "a_total", labels: []string{`kind="y"`, `way="in"`}, want: 8},
		"no series":                                      {name: "a_total", labels: []string{`kind="y"`, `way="out"`}},
		"a gauge without labels":                         {name: "b", want: 3000},
		"an unknown name":                                {name: "c"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := m.Sum(tc.name, tc.labels...); got != tc.want {
				t.Errorf("sum %g, want %g", got, tc.want)
			}
		})
	}
}

func TestPercentile(t *testing.T) {
	t.Parallel()
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(i+1))
	}
	tests := map[string]struct {
		sorted []time.Duration
		p      float64
		want   time.Duration
	}{
		"the median of a hundred":     {hundred, 50, 50},
		"the 95th of a hundred":       {hundred, 95, 95},
		"the 99th of a hundred":       {hundred, 99, 99},
		"the last of a hundred":       {hundred, 100, 100},
		"the first of a hundred":      {hundred, 0, 1},
		"the only value":              {hundred[:1], 99, 1},
		"the 99th of ten is the last": {hundred[:10], 99, 10},
		"no value":                    {nil, 50, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := gauge.Percentile(tc.sorted, tc.p); got != tc.want {
				t.Errorf("percentile %g is %d, want %d", tc.p, got, tc.want)
			}
		})
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	got := []float64{gauge.Median(nil), gauge.Median([]float64{3, 1, 2}), gauge.Median([]float64{4, 1, 2, 3})}
	if diff := cmp.Diff(got, []float64{0, 2, 2.5}); diff != "" {
		t.Errorf("medians (-got +want):\n%s", diff)
	}
}

// TestDatabaseProcessorTimeIncludesEndedChildren runs a child, as the database, and a
// grandchild, which uses the processor and ends.
func TestDatabaseProcessorTimeIncludesEndedChildren(t *testing.T) {
	t.Parallel()
	// The grandchild counts and ends; then the child prints a line and waits.
	child := exec.CommandContext(t.Context(), "sh", "-c", `sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; echo counted; read end`)
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	p, err := gauge.ReadProcessor([]int{os.Getpid(), os.Getpid()}, child.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if p.Database <= 0 {
		t.Errorf("the database took %s, want more than 0", p.Database)
	}
	if p.Clients <= 0 || p.Busy <= 0 || p.Total <= p.Busy {
		t.Errorf("processor times %+v; want Clients and Busy above 0, and Total above Busy", p)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err == nil {
		t.Error("the child ended without an error; want a failed read at the end of its input")
	}
	if _, err := gauge.ReadProcessor(nil, child.Process.Pid); err == nil {
		t.Error("no error for a process that has ended, want one")
	}
}

func TestOthersIsTheBusyShareOfOtherPrograms(t *testing.T) {
	t.Parallel()
	before := gauge.Processor{Relays: 1, Database: 1, Clients: 1, Busy: 10, Total: 100}
	after := gauge.Processor{Relays: 3, Database: 4, Clients: 6, Busy: 60, Total: 200}
	p := after.Since(before)
	if p.Own() != 10 || p.Others() != 0.4 {
		t.Errorf("Own is %d and Others %g, want 10 and 0.4", p.Own(), p.Others())
	}
	if none := (gauge.Processor{}); none.Others() != 0 {
		t.Errorf("Others of no time is %g, want 0", none.Others())
	}
}
