package chain

import (
	"math"
	"math/bits"
	"sync"
	"time"
)

const (
	// newestWeight is that of the newest call in the averages.
	newestWeight = 0.2
	// averageHalfLife is the time in which what was measured loses half of its weight: an
	// endpoint that was slow or failing is tried again after a while.
	averageHalfLife = 10 * time.Second
	// failurePenalty is what a call that fails costs: about the time of asking again elsewhere.
	failurePenalty = 2 * time.Second
	// latencyStep is the difference that matters: what costs less is alike, and so is
	// what is within a factor of two, so that reads stay with the endpoint that was
	// configured first instead of jumping between nodes at slightly different slots.
	latencyStep = 25 * time.Millisecond
)

// latencyMeter keeps what calls of each method cost, as exponentially weighted
// averages of time and of failures. Safe for concurrent use.
type latencyMeter struct {
	mu      sync.Mutex
	methods map[string]*callAverage
}

type callAverage struct {
	took   float64 // seconds
	failed float64 // 0 to 1
	at     time.Time
}

// newLatencyMeter makes a meter that has seen nothing.
func newLatencyMeter() *latencyMeter { return &latencyMeter{methods: map[string]*callAverage{}} }

// Observe takes one call of the method into account.
func (m *latencyMeter) Observe(method string, took time.Duration, failed bool, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.methods[method]
	if a == nil {
		a = &callAverage{took: took.Seconds(), at: now}
		m.methods[method] = a
	}
	f := decayed(now.Sub(a.at))
	a.failed *= f
	a.took += newestWeight * (took.Seconds() - a.took)
	if failed {
		a.failed += newestWeight * (1 - a.failed)
	} else {
		a.failed -= newestWeight * a.failed
	}
	a.at = now
}

// Slowest is the average time of the method that takes longest; 0 when nothing
// was asked.
func (m *latencyMeter) Slowest() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	var slowest float64
	for _, a := range m.methods {
		slowest = max(slowest, a.took)
	}
	return time.Duration(slowest * float64(time.Second))
}

// Rank is what a call of the method is expected to cost, in steps that double:
// 0 is the best, and what was never asked.
func (m *latencyMeter) Rank(method string, now time.Time) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.methods[method]
	if a == nil {
		return 0
	}
	cost := decayed(now.Sub(a.at)) * (a.took + a.failed*failurePenalty.Seconds())
	return bits.Len64(uint64(cost / latencyStep.Seconds()))
}

func decayed(age time.Duration) float64 {
	return math.Exp2(-max(0, age.Seconds()) / averageHalfLife.Seconds())
}
