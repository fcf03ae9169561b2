package txmgr

import (
	"sync"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// maxComputeUnits is the largest limit that a transaction may request (Solana).
	// Simulations request it.
	maxComputeUnits = 1_400_000
	// maxLoadedData is the most account data that a transaction may load, in bytes (Solana).
	// Simulations request it.
	maxLoadedData = 64 << 20
)

// limitRule makes a limit from the most that simulations consumed.
type limitRule struct {
	// max is the network's limit.
	max uint64
	// margin covers what one simulation does not show. rounding is the multiple to which
	// limits are rounded up, so that processes which saw different transactions still request
	// the same limit.
	margin, rounding uint64
	// step is added when a limit turned out too low.
	step uint64
}

// unitsRule is the rule of compute units. The consumption of one kind varies by 12 000 units,
// depending on the bumps of its PDAs.
func unitsRule() limitRule {
	return limitRule{max: maxComputeUnits, margin: 30_000, rounding: 10_000, step: 100_000}
}

// loadedDataRule is the rule of loaded account data. Accounts that do not exist yet count
// nothing in a simulation. The margin covers all of a transaction's addresses, if each became
// an account with data of 192 bytes, more than a token account has. The network charges pages
// of 32 KiB.
func loadedDataRule() limitRule {
	return limitRule{max: maxLoadedData, margin: shieldpool.MaxAddresses * (64 + 192), rounding: 32 << 10, step: 4 << 20}
}

// limit returns the limit for a transaction whose simulation consumed that much.
func (r limitRule) limit(used uint64) uint32 {
	rounded := (min(used, r.max) + r.margin + r.rounding - 1) / r.rounding * r.rounding
	return uint32(min(rounded, r.max)) //nolint:gosec // max fits
}

// learnedLimits keeps one limit per kind, the largest consumption seen plus a margin, so that
// transactions of a kind look alike.
type learnedLimits struct {
	limitRule
	mu      sync.Mutex
	largest map[shieldpool.Kind]uint64
}

// observe records the consumption of a simulation and returns the kind's limit.
func (l *learnedLimits) observe(k shieldpool.Kind, used uint64) uint32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.largest[k] = max(l.largest[k], min(used, l.max))
	return l.limit(l.largest[k])
}

// current returns the kind's limit, or the maximum before the first simulation.
func (l *learnedLimits) current(k shieldpool.Kind) uint32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	largest, known := l.largest[k]
	if !known {
		largest = l.max
	}
	return l.limit(largest)
}

// raise raises a kind's limit after a transaction exceeded it.
func (l *learnedLimits) raise(k shieldpool.Kind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.largest[k] = min(l.largest[k]+l.step, l.max)
}

// computeLimits are the limits that transactions request: of compute units, and in V1 of loaded
// account data.
type computeLimits struct{ units, loadedData learnedLimits }

func newComputeLimits() *computeLimits {
	return &computeLimits{
		units:      learnedLimits{limitRule: unitsRule(), largest: map[shieldpool.Kind]uint64{}},
		loadedData: learnedLimits{limitRule: loadedDataRule(), largest: map[shieldpool.Kind]uint64{}},
	}
}

// observeLoadedData records how much account data a simulated transaction loaded, and returns
// the kind's limit: the maximum when the endpoint did not report how much.
func (l *computeLimits) observeLoadedData(k shieldpool.Kind, loaded uint64) uint32 {
	if loaded == 0 {
		return maxLoadedData
	}
	return l.loadedData.observe(k, loaded)
}
