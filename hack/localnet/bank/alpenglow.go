package bank

import (
	"errors"
	"slices"
)

// migration is the cluster's change of consensus from TowerBFT to Alpenglow (SIMD-0384).
//
// From a boundary on, blocks hold votes only: no transaction lands, and nothing becomes
// confirmed or finalized. Then the blocks after the last one before the boundary, the
// genesis block of Alpenglow, are deleted. So the block height falls back while slots go
// on, and blockhashes made meanwhile are never valid. Afterwards a block is finalized as
// soon as it is confirmed.
type migration struct {
	// genesis is nil before the boundary.
	genesis *Block
	// confirmed and finalized are the newest such blocks at the boundary.
	confirmed, finalized *Block
	// slotsLeft is the number of slots of the pause that are left.
	slotsLeft uint64
	done      bool
}

// alpenglowFinalizeAfter is the number of blocks on top of a block that make it confirmed
// and finalized under Alpenglow.
const alpenglowFinalizeAfter = 1

func (m *migration) paused() bool { return m.genesis != nil && !m.done }

// StartMigration closes the open block, makes it the genesis block of Alpenglow and
// begins a pause of a number of slots. It returns an error when that was done before.
func (b *Bank) StartMigration(pause uint64) error {
	b.leaderMu.Lock()
	defer b.leaderMu.Unlock()
	if b.migration.genesis != nil {
		return errors.New("migrate: the chain has Alpenglow's genesis block, want a chain under TowerBFT")
	}
	b.mu.Lock()
	open := b.chain.newest()
	confirmed, finalized := b.newestAt(open, Confirmed), b.newestAt(open, Finalized)
	b.advance(1)
	b.migration = migration{genesis: open, confirmed: confirmed, finalized: finalized, slotsLeft: max(pause, 1)}
	b.mu.Unlock()
	b.slotChanged()
	return nil
}

// migrate counts down the pause, and ends it. The caller holds leaderMu and mu.
func (b *Bank) migrate(slots uint64) {
	if !b.migration.paused() {
		return
	}
	if b.migration.slotsLeft > slots {
		b.migration.slotsLeft -= slots
		return
	}
	last := b.chain.newest().Slot
	undone := slices.Clone(b.chain[b.chain.position(b.migration.genesis)+1:])
	b.undo(undone)
	b.openBlock(last+1, undone[0].Height)
	b.migration.done = true
}

// GenesisBlock is Alpenglow's genesis block; nil under TowerBFT.
func (v View) GenesisBlock() *Block {
	if !v.bank.migration.done {
		return nil
	}
	return v.bank.migration.genesis
}
