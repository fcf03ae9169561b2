package bank

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gagliardetto/solana-go"
)

// Undone is a transaction of a block that a fork has undone.
type Undone struct {
	Signature solana.Signature
	// Slot is the undone slot in which the transaction had landed.
	Slot uint64
	// Again says that Fork sent the transaction again on the new branch. It can then
	// land with another outcome, or wait for a block that is not full. It cannot land
	// when the fork also undid its blockhash.
	Again bool
}

// LandAgain is an argument of Fork that sends every undone transaction again.
func LandAgain(*Landed) bool { return true }

// Fork makes the cluster choose another branch. It undoes the newest n blocks,
// the open block and confirmed blocks included: accounts, fees, statuses, history
// and blockhashes are as if these blocks had never existed. The same number of new
// blocks replaces them at once, in unused slots, so that slots and block heights
// keep rising at every commitment level. All new blocks but the open one are
// empty. The open block gets, in their old order, the transactions for which again
// returns true. When again is nil, all are lost, and clients have to send them
// again.
//
// Fork returns the undone transactions in the order of the chain. When n is 0 or
// reaches a finalized block, Fork returns an error and changes nothing.
func (b *Bank) Fork(n uint64, again func(*Landed) bool) ([]Undone, error) {
	return b.fork(func() uint64 { return n }, again)
}

// ForkFrom undoes every block from a slot on, as Fork does. It counts the blocks
// while the chain is locked.
func (b *Bank) ForkFrom(slot uint64, again func(*Landed) bool) ([]Undone, error) {
	return b.fork(func() (n uint64) {
		for _, block := range b.chain {
			if block.Slot >= slot {
				n++
			}
		}
		return n
	}, again)
}

// fork undoes as many blocks as count returns while the chain is locked.
func (b *Bank) fork(count func() uint64, again func(*Landed) bool) ([]Undone, error) {
	b.leaderMu.Lock()
	defer b.leaderMu.Unlock()
	b.mu.Lock()
	if b.migration.paused() {
		b.mu.Unlock()
		return nil, errors.New("fork: the chain's consensus migrates, want it to have ended")
	}
	n := count()
	open := b.chain.newest()
	undoable := open.Height - b.newestAt(open, Finalized).Height
	if n < 1 || n > undoable {
		b.mu.Unlock()
		return nil, fmt.Errorf("fork: cannot undo %d blocks: want 1 to %d, the number above the finalized block", n, undoable)
	}
	undone := slices.Clone(b.chain[len(b.chain)-int(n):]) //nolint:gosec // n is at most the chain's length
	b.undo(undone)
	b.openBlock(open.Slot+1, undone[0].Height)
	for range n - 1 {
		b.advance(1)
	}
	b.mu.Unlock()

	b.slotChanged()
	b.used = newBlockUse()
	out := b.landAgain(undone, again)
	b.landWaiting()
	return out, nil
}

// undo removes the newest blocks from the chain, with their account versions and
// their entries in the indices.
func (b *Bank) undo(blocks []*Block) {
	b.chain = b.chain[:len(b.chain)-len(blocks)]
	parent := b.chain.newest().Slot
	for _, block := range slices.Backward(blocks) {
		delete(b.hashes, block.Hash)
		for _, key := range block.written {
			b.accounts.drop(key, parent)
		}
		for _, l := range slices.Backward(block.Landed) {
			delete(b.messages, l.hash)
			delete(b.bySignature, l.Signature())
			for _, key := range l.Keys {
				if rest := b.byAddress[key]; len(rest) > 1 {
					b.byAddress[key] = rest[:len(rest)-1]
				} else {
					delete(b.byAddress, key)
				}
			}
		}
	}
}

// landAgain sends the chosen transactions of undone blocks again.
func (b *Bank) landAgain(undone []*Block, again func(*Landed) bool) []Undone {
	var out []Undone
	for _, block := range undone {
		for _, l := range block.Landed {
			u := Undone{Signature: l.Signature(), Slot: block.Slot, Again: again != nil && again(l)}
			if u.Again {
				_, _ = b.land(l.Transaction) // its outcome is in its status, as after any send
			}
			out = append(out, u)
		}
	}
	return out
}
