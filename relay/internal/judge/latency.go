package judge

import (
	"math"
	"math/bits"
	"sync"
	"time"
)

const (
	// weight is that of the newest call in the averages.
	weight = 0.2
	// fade is the time in which what was measured loses half of its weight: an
	// endpoint that was slow or failing is tried again after a while.
	fade = 10 * time.Second
	// penalty is what a call that fails costs: about the time of asking again elsewhere.
	penalty = 2 * time.Second
	// step is the difference that matters: what costs less is alike, and so is
	// what is within a factor of two, so that reads stay with the endpoint that was
	// configured first instead of jumping between nodes at slightly different slots.
	step = 25 * time.Millisecond
)

// Meter keeps what calls of each method cost, as exponentially weighted
// averages of time and of failures. Safe for concurrent use.
type Meter struct {
	mu      sync.Mutex
	methods map[string]*average
}

type average struct {
	took   float64 // seconds
	failed float64 // 0 to 1
	at     time.Time
}

// NewMeter makes a meter that has seen nothing.
func NewMeter() *Meter { return &Meter{methods: map[string]*average{}} }

// Observe takes one call of the method into account.
func (m *Meter) Observe(method string, took time.Duration, failed bool, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.methods[method]
	if a == nil {
		a = &average{took: took.Seconds(), at: now}
		m.methods[method] = a
	}
	f := faded(now.Sub(a.at))
	a.failed *= f
	a.took += weight * (took.Seconds() - a.took)
	if failed {
		a.failed += weight * (1 - a.failed)
	} else {
		a.failed -= weight * a.failed
	}
	a.at = now
}

// Slowest is the average time of the method that takes longest; 0 when nothing
// was asked.
func (m *Meter) Slowest() time.Duration {
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
func (m *Meter) Rank(method string, now time.Time) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.methods[method]
	if a == nil {
		return 0
	}
	cost := faded(now.Sub(a.at)) * (a.took + a.failed*penalty.Seconds())
	return bits.Len64(uint64(cost / step.Seconds()))
}

func faded(age time.Duration) float64 {
	return math.Exp2(-max(0, age.Seconds()) / fade.Seconds())
}
