package txmgr

import (
	"sync"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// maxComputeUnits is the largest limit that a transaction may request (Solana).
	// Simulations request it.
	maxComputeUnits = 1_400_000
	// computeMargin covers what simulation does not show: PDA bumps spread one kind over 12
	// 000 units.
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
	return l.of(k)
}

// limit is the kind's limit if it is known.
func (l *computeLimits) limit(k shieldpool.Kind) uint32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of(k)
}

// of rounds up, so that processes which saw different transactions still ask for the same
// limit.
func (l *computeLimits) of(k shieldpool.Kind) uint32 {
	largest, known := l.largest[k]
	if !known {
		return maxComputeUnits
	}
	return limitOf(uint64(largest))
}

// limitOf is the limit for a transaction that consumed so many units.
func limitOf(units uint64) uint32 {
	rounded := (units + computeMargin + computeRounding - 1) / computeRounding * computeRounding
	return uint32(min(rounded, maxComputeUnits))
}

// raise lifts a kind's limit after it was exceeded.
func (l *computeLimits) raise(k shieldpool.Kind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.largest[k] = min(l.largest[k]+computeStep, maxComputeUnits)
}
