package chain

import (
	"math"
	"math/bits"
	"sync"
	"time"
)

const (
	// newestWeight is the weight of the newest call in the averages.
	newestWeight = 0.2
	// averageHalfLife is the time in which a measurement loses half of its weight. So the relay
	// tries an endpoint again some time after that endpoint was slow or failed.
	averageHalfLife = 10 * time.Second
	// failurePenalty is the cost of a failed call: about the time that asking another
	// endpoint takes.
	failurePenalty = 2 * time.Second
	// latencyStep is the cost below which all costs have rank 0. Above it each rank spans a
	// factor of two. Endpoints of similar cost therefore have the same rank, and reads stay
	// with the endpoint that is configured first, instead of alternating between nodes at
	// slightly different slots.
	latencyStep = 25 * time.Millisecond
)

// latencyMeter keeps the cost of calls per method, as exponentially weighted
// averages of duration and failure rate. Safe for concurrent use.
type latencyMeter struct {
	mu      sync.Mutex
	methods map[string]*callAverage
}

type callAverage struct {
	took        float64 // seconds
	failureRate float64 // 0 to 1
	at          time.Time
}

// newLatencyMeter makes a meter without measurements.
func newLatencyMeter() *latencyMeter { return &latencyMeter{methods: map[string]*callAverage{}} }

// Observe records one call of the method.
func (m *latencyMeter) Observe(method string, took time.Duration, failed bool, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.methods[method]
	if a == nil {
		a = &callAverage{took: took.Seconds(), at: now}
		m.methods[method] = a
	}
	a.failureRate *= decay(now.Sub(a.at))
	a.took += newestWeight * (took.Seconds() - a.took)
	if failed {
		a.failureRate += newestWeight * (1 - a.failureRate)
	} else {
		a.failureRate -= newestWeight * a.failureRate
	}
	a.at = now
}

// Slowest returns the average duration of the slowest method; 0 when no call was made.
func (m *latencyMeter) Slowest() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	var slowest float64
	for _, a := range m.methods {
		slowest = max(slowest, a.took)
	}
	return time.Duration(slowest * float64(time.Second))
}

// Rank returns the rank of the expected cost of a call: 0 below latencyStep, and one more for
// each doubling. A method that was never called has rank 0.
func (m *latencyMeter) Rank(method string, now time.Time) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.methods[method]
	if a == nil {
		return 0
	}
	cost := decay(now.Sub(a.at)) * (a.took + a.failureRate*failurePenalty.Seconds())
	return bits.Len64(uint64(cost / latencyStep.Seconds()))
}

// decay returns the share of a measurement's weight that is left at the given age.
func decay(age time.Duration) float64 {
	return math.Exp2(-max(0, age.Seconds()) / averageHalfLife.Seconds())
}
