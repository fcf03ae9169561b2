package store

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

// observedRuns collects the results of maintenance jobs; it is safe for concurrent use.
type observedRuns struct {
	mu   sync.Mutex
	runs map[string][]error
}

func (o *observedRuns) observe(job string, _ time.Duration, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.runs == nil {
		o.runs = map[string][]error{}
	}
	o.runs[job] = append(o.runs[job], err)
}

func (o *observedRuns) results(job string) []error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]error(nil), o.runs[job]...)
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("after 60 s not yet true: %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// safeBuffer collects a log.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestMaintenanceRunsInOneProcessAtATimeAndSurvivesFailures(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	var runs observedRuns
	var log safeBuffer
	var mu sync.Mutex
	running, maxRunning := 0, 0
	jobs := []Job{
		{Name: "often", Every: time.Second, Timeout: time.Second, Run: func(context.Context) error {
			mu.Lock()
			running++
			maxRunning = max(maxRunning, running)
			mu.Unlock()
			time.Sleep(100 * time.Millisecond) // so that concurrent runs would overlap
			mu.Lock()
			running--
			mu.Unlock()
			return nil
		}},
		{Name: "fails", Every: time.Second, Timeout: time.Second, Run: func(context.Context) error { return errors.New("the disk is full") }},
		{Name: "panics", Every: time.Second, Timeout: time.Second, Run: func(context.Context) error { panic("a bug") }},
		{Name: "hangs", Every: time.Second, Timeout: 200 * time.Millisecond, Run: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
		{Name: "daily", Every: 24 * time.Hour, Timeout: time.Minute, Run: func(context.Context) error { return nil }},
	}
	var loops sync.WaitGroup
	const processes = 3
	for range processes {
		m, err := NewMaintenance(s, MaintenanceOptions{Jobs: jobs, Log: slog.New(slog.NewTextHandler(&log, nil)), SoftStop: 5 * time.Second, Observe: runs.observe, Now: time.Now})
		ok(t, err)
		loops.Go(func() { m.Run(ctx) })
	}
	for _, name := range []string{"often", "fails", "panics", "hangs"} {
		eventually(t, name+" ran three times", func() bool { return len(runs.results(name)) >= 3 })
	}
	cancel()
	loops.Wait()
	if maxRunning != 1 {
		t.Errorf("at most %d runs of one job overlapped, want 1", maxRunning)
	}
	for _, err := range runs.results("fails") {
		if err == nil || !strings.Contains(err.Error(), "disk") {
			t.Errorf("a failing job is observed with error %v, want the full disk", err)
		}
	}
	for _, err := range runs.results("hangs") {
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
			t.Errorf("a hanging job is observed with error %v, want the end of its context", err)
		}
	}
	if n := len(runs.results("daily")); n != 1 {
		t.Errorf("the daily job ran %d times, want 1 in all processes together", n)
	}
	if got := log.String(); strings.Count(got, "maintenance job failed") < 3 || strings.Count(got, "the disk is full") != len(runs.results("fails")) {
		t.Errorf("log, want each failure once:\n%s", got)
	}
}

func TestAnotherProcessTakesMaintenanceOver(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	start := func(ctx context.Context, runs *observedRuns) func() {
		m, err := NewMaintenance(s, MaintenanceOptions{
			Jobs: []Job{{Name: "often", Every: time.Second, Timeout: time.Second, Run: func(context.Context) error { return nil }}},
			Log:  discard(), SoftStop: time.Second, Observe: runs.observe, Now: time.Now,
		})
		ok(t, err)
		ctx, stop := context.WithCancel(ctx)
		var wg sync.WaitGroup
		wg.Go(func() { m.Run(ctx) })
		return func() { stop(); wg.Wait() }
	}
	var first, second observedRuns
	stopFirst := start(ctx, &first)
	eventually(t, "the first process runs the job", func() bool { return len(first.results("often")) > 0 })
	stopSecond := start(ctx, &second)
	stopFirst()
	before := len(second.results("often"))
	eventually(t, "the second process takes over", func() bool { return len(second.results("often")) > before })
	stopSecond()
}

func TestJobsForDifferentWorkDoNotReplaceEachOther(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, step := range []struct {
		of   string
		want bool
	}{{"", true}, {" of payers a", true}, {" of payers a", false}, {" of payers b", true}, {"", false}} {
		if due, err := s.startJob(t.Context(), Job{Name: "ledger", For: step.of, Every: time.Hour}); err != nil || due != step.want {
			t.Errorf("the job%s is due: %t, error %v; want %t", step.of, due, err, step.want)
		}
	}
}

func TestNewMaintenanceRefusesInvalidOptions(t *testing.T) {
	t.Parallel()
	s := open(t)
	run := func(context.Context) error { return nil }
	good := Job{Name: "a", Every: time.Minute, Timeout: time.Minute, Run: run}
	tests := map[string][]Job{
		"no jobs":                    nil,
		"a job without a name":       {{Every: time.Minute, Timeout: time.Minute, Run: run}},
		"a job that does nothing":    {{Name: "b", Every: time.Minute, Timeout: time.Minute}},
		"a period below a second":    {{Name: "b", Every: time.Millisecond, Timeout: time.Millisecond, Run: run}},
		"a timeout above the period": {{Name: "b", Every: time.Minute, Timeout: time.Hour, Run: run}},
		"two jobs of the same name":  {good, good},
		"no timeout":                 {{Name: "b", Every: time.Minute, Run: run}},
	}
	for name, jobs := range tests {
		if _, err := NewMaintenance(s, MaintenanceOptions{Jobs: jobs, Log: discard(), SoftStop: time.Second, Observe: func(string, time.Duration, error) {}, Now: time.Now}); err == nil {
			t.Errorf("%s: accepted, want an error", name)
		}
	}
	if _, err := NewMaintenance(s, MaintenanceOptions{Jobs: []Job{good}, Log: discard(), SoftStop: time.Second, Now: time.Now}); err == nil {
		t.Error("maintenance without Observe is accepted")
	}
}
