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

// observed counts runs of maintenance jobs; it is safe for concurrent use.
type observed struct {
	mu   sync.Mutex
	runs map[string][]error
}

func (o *observed) observe(job string, _ time.Duration, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.runs == nil {
		o.runs = map[string][]error{}
	}
	o.runs[job] = append(o.runs[job], err)
}

func (o *observed) of(job string) []error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]error(nil), o.runs[job]...)
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for !is() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 60 s: %s", what)
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

func TestMaintenanceIsDoneByOneProcessAtATimeAndOutlivesFailures(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	var seen observed
	var log safeBuffer
	var mu sync.Mutex
	now, most, good := 0, 0, 0
	jobs := []Job{
		{Name: "often", Every: time.Second, Timeout: time.Second, Run: func(context.Context) error {
			mu.Lock()
			good++
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(100 * time.Millisecond) // a run that lasts
			mu.Lock()
			now--
			mu.Unlock()
			return nil
		}},
		{Name: "fails", Every: time.Second, Timeout: time.Second, Run: func(context.Context) error { return errors.New("a disk that is full") }},
		{Name: "panics", Every: time.Second, Timeout: time.Second, Run: func(context.Context) error { panic("a fault of ours") }},
		{Name: "hangs", Every: time.Second, Timeout: 200 * time.Millisecond, Run: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
		{Name: "daily", Every: 24 * time.Hour, Timeout: time.Minute, Run: func(context.Context) error { return nil }},
	}
	var running sync.WaitGroup
	const processes = 3
	for range processes {
		u, err := NewMaintenance(s, MaintenanceOptions{Jobs: jobs, Log: slog.New(slog.NewTextHandler(&log, nil)), SoftStop: 5 * time.Second, Observe: seen.observe, Now: time.Now})
		ok(t, err)
		running.Go(func() { u.Run(ctx) })
	}
	for _, name := range []string{"often", "fails", "panics", "hangs"} {
		eventually(t, name+" ran three times", func() bool { return len(seen.of(name)) >= 3 })
	}
	cancel()
	running.Wait()
	if most != 1 {
		t.Errorf("%d runs of one job overlapped, want one", most)
	}
	for _, err := range seen.of("fails") {
		if err == nil || !strings.Contains(err.Error(), "disk") {
			t.Errorf("a failing job is observed with %v", err)
		}
	}
	for _, err := range seen.of("hangs") {
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
			t.Errorf("a hanging job is observed with %v, want the end of its time", err)
		}
	}
	if n := len(seen.of("daily")); n != 1 {
		t.Errorf("the daily job ran %d times, want once for all processes", n)
	}
	if got := log.String(); strings.Count(got, "maintenance job failed") < 3 || strings.Count(got, "disk that is full") != len(seen.of("fails")) {
		t.Errorf("each failure is to be logged once:\n%s", got)
	}
}

func TestMaintenanceContinuesWithoutItsLeader(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	start := func(ctx context.Context, seen *observed) func() {
		u, err := NewMaintenance(s, MaintenanceOptions{
			Jobs: []Job{{Name: "often", Every: time.Second, Timeout: time.Second, Run: func(context.Context) error { return nil }}},
			Log:  discard(), SoftStop: time.Second, Observe: seen.observe, Now: time.Now,
		})
		ok(t, err)
		ctx, stop := context.WithCancel(ctx)
		var wg sync.WaitGroup
		wg.Go(func() { u.Run(ctx) })
		return func() { stop(); wg.Wait() }
	}
	var first, second observed
	stopFirst := start(ctx, &first)
	eventually(t, "the first process runs the job", func() bool { return len(first.of("often")) > 0 })
	stopSecond := start(ctx, &second)
	stopFirst()
	before := len(second.of("often"))
	eventually(t, "the second process takes over", func() bool { return len(second.of("often")) > before })
	stopSecond()
}

func TestNewMaintenanceRefusesInvalidOptions(t *testing.T) {
	t.Parallel()
	s := open(t)
	run := func(context.Context) error { return nil }
	good := Job{Name: "a", Every: time.Minute, Timeout: time.Minute, Run: run}
	tests := map[string][]Job{
		"no jobs":                         nil,
		"a job without a name":            {{Every: time.Minute, Timeout: time.Minute, Run: run}},
		"a job that does nothing":         {{Name: "b", Every: time.Minute, Timeout: time.Minute}},
		"a period below a second":         {{Name: "b", Every: time.Millisecond, Timeout: time.Millisecond, Run: run}},
		"a timeout above the period":      {{Name: "b", Every: time.Minute, Timeout: time.Hour, Run: run}},
		"two jobs of the same name":       {good, good},
		"a timeout that never comes, too": {{Name: "b", Every: time.Minute, Run: run}},
	}
	for name, jobs := range tests {
		if _, err := NewMaintenance(s, MaintenanceOptions{Jobs: jobs, Log: discard(), SoftStop: time.Second, Observe: func(string, time.Duration, error) {}, Now: time.Now}); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if _, err := NewMaintenance(s, MaintenanceOptions{Jobs: []Job{good}, Log: discard(), SoftStop: time.Second, Now: time.Now}); err == nil {
		t.Error("maintenance without Observe is accepted")
	}
}
