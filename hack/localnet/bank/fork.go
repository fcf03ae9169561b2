package bank

import (
	"fmt"
	"slices"

	"github.com/gagliardetto/solana-go"
)

// Undone is a transaction of a block that a fork has undone.
type Undone struct {
	Signature solana.Signature
	// Slot is where it had landed.
	Slot uint64
	// Again says that it was sent again on the new branch, with any result: it can
	// land with another outcome or wait for room. A transaction whose blockhash was
	// undone as well cannot land any more.
	Again bool
}

// LandAgain is an argument of Fork by which every transaction lands again.
func LandAgain(*Landed) bool { return true }

// Fork makes the cluster choose another branch: the newest n blocks, the open
// one and confirmed ones included, are undone without a trace in accounts,
// fees, statuses, history and blockhashes. The same number of new blocks
// replaces them at once, in unused slots, so that slots and block heights keep
// rising at every commitment level. All but the open one are empty. The open block
// gets, in their old order, the transactions for which again returns true; with nil
// all are lost, and clients have to send them again.
//
// Fork returns the undone transactions in the order of the chain. It refuses,
// and changes nothing, when n reaches a finalized block.
func (b *Bank) Fork(n uint64, again func(*Landed) bool) ([]Undone, error) {
	return b.fork(func() uint64 { return n }, again)
}

// ForkFrom is Fork of every block from a slot on, up to the newest when it
// runs.
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
	b.leading.Lock()
	defer b.leading.Unlock()
	b.mu.Lock()
	n := count()
	open := b.chain.open()
	undoable := open.Height - b.settled(open, Finalized).Height
	if n < 1 || n > undoable {
		b.mu.Unlock()
		return nil, fmt.Errorf("fork: cannot undo %d blocks: want 1 to %d, those above the finalized one", n, undoable)
	}
	undone := slices.Clone(b.chain[len(b.chain)-int(n):]) //nolint:gosec // n is at most the chain's length
	b.undo(undone)
	b.reopen(open.Slot+1, undone[0])
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

// undo takes the newest blocks off the chain, with everything that came with
// them.
func (b *Bank) undo(blocks []*Block) {
	b.chain = b.chain[:len(b.chain)-len(blocks)]
	fork := b.chain.open().Slot
	for _, block := range slices.Backward(blocks) {
		delete(b.hashes, block.Hash)
		for _, key := range block.written {
			b.accounts.drop(key, fork)
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

// reopen puts an open block at a slot onto a chain whose blocks are all
// closed, in place of one that was undone.
func (b *Bank) reopen(slot uint64, undone *Block) {
	parent := b.chain.open()
	b.chain = append(b.chain, &Block{
		Slot:         slot,
		Height:       undone.Height,
		ParentSlot:   parent.Slot,
		ParentHash:   parent.Hash,
		Time:         b.opts.Clock().Unix(),
		Transactions: parent.Transactions,
	})
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
