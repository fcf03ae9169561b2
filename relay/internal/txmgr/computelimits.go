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

// limitRule computes a limit from the largest consumption that simulations showed.
type limitRule struct {
	// max is the network's limit.
	max uint64
	// margin covers what one simulation does not show. Limits are rounded up to a multiple of
	// rounding, so that processes request the same limit although they saw different
	// transactions.
	margin, rounding uint64
	// assumed is the consumption of a kind before its first simulation. No transaction is signed
	// with it; the caps and the payers reckon with its fee.
	assumed uint64
	// step is added to the largest consumption when a limit turned out too low.
	step uint64
}

// unitsRule is the rule of compute units. The consumption of transactions of one kind varies by
// 12 000 units, because their PDAs have different bumps. The margin is larger than that.
func unitsRule() limitRule {
	return limitRule{max: maxComputeUnits, margin: 30_000, rounding: 10_000, assumed: 370_000, step: 100_000}
}

// loadedDataRule is the rule of loaded account data. A simulation counts nothing for accounts
// that do not exist yet, but they may exist once the transaction runs. The margin therefore
// allows an account with 192 bytes of data, more than a token account has, at each of the
// transaction's addresses. The network counts 64 bytes more for each account. The rounding is the
// network's unit of charging, 32 KiB.
func loadedDataRule() limitRule {
	return limitRule{max: maxLoadedData, margin: shieldpool.MaxAddresses * (64 + 192), rounding: 32 << 10, assumed: maxLoadedData, step: 4 << 20}
}

// limit returns the limit for a consumption of used units or bytes.
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
	// raised are the raises of kinds that this process has not simulated yet: another process
	// sent the transaction that exceeded its limit. They count with the first simulation.
	raised map[shieldpool.Kind]uint64
}

func newLearnedLimits(r limitRule) learnedLimits {
	return learnedLimits{limitRule: r, largest: map[shieldpool.Kind]uint64{}, raised: map[shieldpool.Kind]uint64{}}
}

// observe records the consumption of a simulation and returns the kind's limit.
func (l *learnedLimits) observe(k shieldpool.Kind, used uint64) uint32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.largest[k] = max(l.largest[k], min(min(used, l.max)+l.raised[k], l.max))
	delete(l.raised, k)
	return l.limit(l.largest[k])
}

// current returns the kind's limit, or one for the assumed consumption before the first simulation.
func (l *learnedLimits) current(k shieldpool.Kind) uint32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	largest, known := l.largest[k]
	if !known {
		largest = l.assumed
	}
	return l.limit(largest)
}

// raise raises a kind's limit after a transaction exceeded it.
func (l *learnedLimits) raise(k shieldpool.Kind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if largest, known := l.largest[k]; known {
		l.largest[k] = min(largest+l.step, l.max)
	} else {
		l.raised[k] += l.step
	}
}

// computeLimits are the limits that transactions request. Every transaction requests a limit of
// compute units. A transaction of the format V1 also requests a limit of loaded account data.
type computeLimits struct{ units, loadedData learnedLimits }

func newComputeLimits() *computeLimits {
	return &computeLimits{units: newLearnedLimits(unitsRule()), loadedData: newLearnedLimits(loadedDataRule())}
}

// observeLoadedData records how much account data a simulated transaction loaded, and returns
// the kind's limit. If loaded is 0, the endpoint did not report it, and the limit is the maximum.
func (l *computeLimits) observeLoadedData(k shieldpool.Kind, loaded uint64) uint32 {
	if loaded == 0 {
		return maxLoadedData
	}
	return l.loadedData.observe(k, loaded)
}
