package txmgr

import (
	"sync"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// maxComputeUnits is the largest limit that a transaction may request (Solana).
	// Simulations request it.
	maxComputeUnits = 1_400_000
	// computeMargin covers what one simulation does not show: with the bumps of its PDAs, the
	// consumption of one kind varies by 12 000 units.
	computeMargin = 30_000
	// computeRounding is the multiple to which limits are rounded up.
	computeRounding = 10_000
	// computeStep is added when a limit turned out too low.
	computeStep = 100_000
)

// computeLimits keeps one limit per kind, the largest consumption seen plus a margin, so
// that transactions of a kind look alike.
type computeLimits struct {
	mu      sync.Mutex
	largest map[shieldpool.Kind]uint32
}

func newComputeLimits() *computeLimits {
	return &computeLimits{largest: map[shieldpool.Kind]uint32{}}
}

// observe records the consumption of a simulation and returns the kind's limit.
func (l *computeLimits) observe(k shieldpool.Kind, units uint64) uint32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := uint32(min(units, maxComputeUnits))
	l.largest[k] = max(l.largest[k], u)
	return l.limitLocked(k)
}

// limit returns the kind's limit, or the maximum before the first simulation.
func (l *computeLimits) limit(k shieldpool.Kind) uint32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limitLocked(k)
}

// limitLocked rounds up, so that processes which saw different transactions still request
// the same limit. The caller holds mu.
func (l *computeLimits) limitLocked(k shieldpool.Kind) uint32 {
	largest, known := l.largest[k]
	if !known {
		return maxComputeUnits
	}
	return limitOf(uint64(largest))
}

// limitOf returns the limit for a transaction whose simulation consumed the units.
func limitOf(units uint64) uint32 {
	rounded := (units + computeMargin + computeRounding - 1) / computeRounding * computeRounding
	return uint32(min(rounded, maxComputeUnits))
}

// raise raises a kind's limit after a transaction exceeded it.
func (l *computeLimits) raise(k shieldpool.Kind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.largest[k] = min(l.largest[k]+computeStep, maxComputeUnits)
}
