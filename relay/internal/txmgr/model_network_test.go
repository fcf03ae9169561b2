package txmgr_test

import (
	"slices"
	"time"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// The changes of the network itself while relays work: the migration to Alpenglow's consensus, the
// rate of rent, and the duration of a slot.

// modelMigration is the migration from TowerBFT to Alpenglow (SIMD-0384). Its pause has blocks without
// transactions, while nothing becomes confirmed or finalized. Then all blocks after the genesis block
// are deleted: heights fall back, slots go on, and the blockhashes of the pause were never valid.
type modelMigration struct {
	genesis *modelBlock // nil before
	left    uint64      // the blocks of the pause that are left
}

func (m *modelMigration) paused() bool { return m.left > 0 }

// startMigration makes the newest block Alpenglow's genesis block, and starts the pause. The chain
// migrates once.
func (c *modelChain) startMigration(blocks uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.migration.genesis != nil {
		return false
	}
	c.migration = modelMigration{genesis: c.tip, left: max(blocks, 1)}
	return true
}

// migrate counts a block of the pause, and ends the pause after the last one. The caller has locked mu.
func (c *modelChain) migrate() {
	if c.migration.left--; c.migration.left == 0 {
		c.tip = c.migration.genesis
		c.finalAfter = c.confirmAfter // from now on a confirmed block is final
	}
}

// modelRents are the rates of rent: one that mainnet may fall to, today's, and the highest.
var modelRents = []shieldpool.Rent{2575, chainRent(), shieldpool.HighestRent}

// networkOperations returns the changes of the network.
func (m *model) networkOperations() []modelOperation {
	return []modelOperation{
		{"consensus migrates", 1, func(*modelProcess) {
			if n := 1 + m.rand.Uint64N(2*m.chain.blockhashLife); m.chain.startMigration(n) {
				m.note("the migration's pause has %d blocks", n)
			}
		}},
		{"rent changes", 1, func(*modelProcess) {
			rate := modelRents[m.rand.IntN(len(modelRents))]
			m.chain.mu.Lock()
			m.chain.rent = rate
			m.chain.mu.Unlock()
			m.note("the rate of rent is %d", rate)
		}},
		{"relays read the rent", 2, func(*modelProcess) { m.readRent() }},
		{"slot time changes", 1, func(*modelProcess) {
			m.mu.Lock()
			m.slot = []time.Duration{modelSlot / 2, modelSlot, 2 * modelSlot}[m.rand.IntN(3)]
			m.mu.Unlock()
			m.note("a slot takes %s", m.slotTime())
		}},
	}
}

// readRent makes the relays know the chain's rate of rent.
func (w *modelWorld) readRent() {
	w.chain.mu.Lock()
	rate := w.chain.rent
	w.chain.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.knownRent = rate
}

// rent is the rate of rent that the relays know.
func (w *modelWorld) rent() shieldpool.Rent {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.knownRent
}

// isRent reports whether an amount is the rent of so many accounts at one of the rates.
func isRent(lamports uint64, accounts uint64) bool {
	return slices.ContainsFunc(modelRents, func(r shieldpool.Rent) bool { return lamports == accounts*r.Minimum(0) })
}

// slotTime is how long a slot takes in the model's time.
func (w *modelWorld) slotTime() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.slot
}

// knownSlotTime is the duration of a slot as the relays measure it: blockhashes of this chain live for
// fewer slots than mainnet's, so the relays' time is shorter than the model's.
func (w *modelWorld) knownSlotTime() time.Duration {
	return nominalSlot() * w.slotTime() / modelSlot
}
