package report_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/e2e/report"
)

func TestAReportTellsWhatWasSeenAndSumsUp(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	r := report.New(&out, func() time.Time { return now })
	r.Say("Kubernetes %s", "v1.36.3")
	now = now.Add(61 * time.Second)
	first := r.Begin("install", "the chart installs")
	now = now.Add(1500 * time.Millisecond)
	first.Saw("%d operators are ready", 2)
	first.Sum("ready in %d s", 1)
	first.End(nil)
	r.Skip("dry", "no pods are added")
	r.Figure("install to ready", "%.1f s", 1.5)
	if !r.Table() {
		t.Error("nothing failed, and the table says otherwise")
	}
	want := `00:00  Kubernetes v1.36.3

01:01  install: the chart installs
01:03       1.5 s  2 operators are ready
01:03    passed in 1.5 s

scenario      outcome    seconds  what was counted
install       passed         1.5  ready in 1 s
dry           not run             by -only

install to ready                                                       1.5 s

every scenario passed in 1m3s
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestAFailedScenarioFailsTheRun(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := report.New(&out, time.Now)
	r.Begin("hold", "a RelayPool waits").End(errors.New("it did not"))
	if r.Table() {
		t.Error("a scenario failed, and the table says otherwise")
	}
	for _, want := range []string{"FAILED after", "hold          FAILED", "it did not", "SCENARIOS FAILED"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, out.String())
		}
	}
}
