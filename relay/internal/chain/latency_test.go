package chain

import (
	"testing"
	"time"
)

func TestRank(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	observe := func(m *latencyMeter, n int, took time.Duration, failed bool) {
		for range n {
			m.Observe("m", took, failed, now)
		}
	}
	tests := map[string]struct {
		calls func(*latencyMeter)
		later time.Duration
		want  int
	}{
		"a method never called ranks best":    {func(*latencyMeter) {}, 0, 0},
		"up to 25 ms ranks best":              {func(m *latencyMeter) { observe(m, 9, 24*time.Millisecond, false) }, 0, 0},
		"each doubling is a rank":             {func(m *latencyMeter) { observe(m, 9, 130*time.Millisecond, false) }, 0, 3},
		"one failure costs much":              {func(m *latencyMeter) { observe(m, 1, time.Millisecond, true) }, 0, 5},
		"more failures cost more":             {func(m *latencyMeter) { observe(m, 9, time.Millisecond, true) }, 0, 7},
		"good calls make up for a failure":    {func(m *latencyMeter) { observe(m, 1, 0, true); observe(m, 15, time.Millisecond, false) }, 0, 0},
		"time makes up for a failure":         {func(m *latencyMeter) { observe(m, 1, 0, true) }, time.Minute, 0},
		"another method's calls do not count": {func(m *latencyMeter) { m.Observe("other", time.Minute, true, now) }, 0, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newLatencyMeter()
			test.calls(m)
			if got := m.Rank("m", now.Add(test.later)); got != test.want {
				t.Errorf("rank is %d, want %d", got, test.want)
			}
		})
	}
	m := newLatencyMeter()
	if m.Slowest() != 0 {
		t.Error("a meter without calls reports a latency")
	}
	m.Observe("m", time.Second, false, now)
	m.Observe("m", 2*time.Second, false, now)
	m.Observe("n", time.Millisecond, false, now)
	if m.Slowest() != 1200*time.Millisecond {
		t.Errorf("the slowest method takes %s, want 1.2 s", m.Slowest())
	}
}
