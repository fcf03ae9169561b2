package commitments

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/gagliardetto/solana-go"
	"golang.org/x/sync/errgroup"

	"github.com/relaypool/relaypool/relay/merkle"
	"github.com/relaypool/relaypool/relay/onchain"
)

const (
	// firstPage is short, because a follower is seldom far behind. signaturePage is the
	// largest page of getSignaturesForAddress (Solana).
	firstPage, signaturePage = 50, 1000
	// maxPagesOfSlot is how many pages of a list may end in the same slot: more than a block has room for.
	maxPagesOfSlot = 50
	// slotBatch is the number of slots that are stored at once; readAhead is the number of
	// blocks that are read concurrently.
	slotBatch, readAhead = 64, 4
	// progressEvery is the number of slots between two progress lines in the log.
	progressEvery = 50 * slotBatch
	// loadPage is the number of stored leaves that are read at once.
	loadPage = 20_000
)

// load updates the tree in memory from the store, which another pod may have changed.
func (f *Follower) load(ctx context.Context) (Position, error) {
	pos, err := f.Store.Position(ctx)
	if err != nil {
		return pos, err
	}
	f.readTo = pos.Slot
	if f.tree == nil || f.generation != pos.Generation || f.tree.NextIndex() > pos.Leaves {
		tree, err := f.restore(ctx, pos.Generation, pos.Leaves)
		if err != nil {
			return pos, err
		}
		f.tree, f.generation, f.trusted = tree, pos.Generation, false
		f.forget(tree.NextIndex())
	}
	return pos, f.walk(ctx, pos, f.tree.NextIndex(), func(l IndexedCommitment) error {
		f.newest.add(f.tree.NextIndex(), l)
		return f.appendStored(ctx, f.tree, pos.Generation, l)
	})
}

// walk visits the stored leaves, starting at the leaf with the index from.
func (f *Follower) walk(ctx context.Context, pos Position, from uint64, visit func(IndexedCommitment) error) error {
	for from < pos.Leaves {
		leaves, err := f.Store.Read(ctx, pos.Generation, from, int(min(loadPage, pos.Leaves-from)))
		if err != nil {
			return err
		}
		for _, l := range leaves {
			if err := visit(l); err != nil {
				return err
			}
		}
		from += uint64(len(leaves))
		if pos.Leaves > loadPage {
			f.Log.InfoContext(ctx, "loading stored commitments", "loaded", from, "stored", pos.Leaves)
		}
	}
	return nil
}

func appendLeaf(t *merkle.Tree, l IndexedCommitment) error {
	e, err := merkle.FromBytes(l.Commitment)
	if err != nil {
		return fmt.Errorf("leaf %d: %w", t.NextIndex(), err)
	}
	return t.Append(&e)
}

// read stores the leaves of every slot since the position, in the order of
// slots and of transactions inside each block.
func (f *Follower) read(ctx context.Context, pos Position) (Position, error) {
	slots, err := f.slots(ctx, pos.Slot)
	if err != nil {
		return pos, err
	}
	var done int
	for batch := range slices.Chunk(slots, slotBatch) {
		next, err := f.extend(ctx, batch)
		if err != nil {
			return pos, err
		}
		if pos, err = f.store(ctx, pos, next, batch[len(batch)-1]); err != nil {
			return pos, err
		}
		if done += len(batch); done%progressEvery == 0 {
			f.Log.InfoContext(ctx, "reading commitments from the chain", "slots", done, "of", len(slots), "leaves", pos.Leaves)
		}
	}
	return pos, nil
}

// extension is the tree with further leaves, and its checkpoints among them. unknownVersions is the number of
// transactions in their blocks that cannot be decoded.
type extension struct {
	tree            *merkle.Tree
	leaves          []IndexedCommitment
	checkpoints     []Checkpoint
	unknownVersions uint64
}

// extend reads the leaves of the slots, and adds them to a copy of the tree.
func (f *Follower) extend(ctx context.Context, slots []uint64) (next extension, err error) {
	if next.leaves, next.unknownVersions, err = f.readLeaves(ctx, slots); err != nil {
		return next, err
	}
	tree := *f.tree
	next.tree = &tree
	for _, l := range next.leaves {
		if err := appendLeaf(&tree, l); err != nil {
			return next, err
		}
		if tree.NextIndex()%f.CheckpointEvery == 0 {
			next.checkpoints = append(next.checkpoints, checkpointOf(&tree))
		}
	}
	return next, nil
}

// store stores the leaves of the extension, after which every slot up to slot counts as read.
func (f *Follower) store(ctx context.Context, pos Position, next extension, slot uint64) (Position, error) {
	if err := f.Store.Append(ctx, pos, next.leaves, slot); err != nil {
		return pos, err
	}
	f.countUnknown(ctx, slot, next.unknownVersions)
	f.tree = next.tree
	for i, l := range next.leaves {
		f.newest.add(pos.Leaves+uint64(i), l)
	}
	pos.Leaves, pos.Slot = pos.Leaves+uint64(len(next.leaves)), slot
	for _, c := range next.checkpoints {
		if err := f.Store.AddCheckpoint(ctx, pos.Generation, c); err != nil {
			return pos, err
		}
	}
	return pos, nil
}

// slots lists the slots after the given one that contain transactions of the tree, oldest first.
// The endpoint lists signatures newest first, and in no order inside a slot.
func (f *Follower) slots(ctx context.Context, after uint64) ([]uint64, error) {
	var out []uint64
	var before solana.Signature
	lowest, pages := uint64(math.MaxUint64), 0
	for limit := firstPage; ; limit = signaturePage {
		page, err := f.Chain.SignaturesFor(ctx, f.Pool.MerkleTree, before, solana.Signature{}, limit)
		if err != nil {
			return nil, fmt.Errorf("list the tree's transactions: %w", err)
		}
		for _, s := range page {
			if s.Slot <= after {
				return oldestFirst(out), nil
			}
			if !s.Failed {
				out = append(out, s.Slot)
			}
		}
		// Only an empty page is the end: endpoints may return a short page before it.
		if len(page) == 0 {
			return oldestFirst(out), nil
		}
		last := page[len(page)-1]
		if before = last.Signature; last.Slot < lowest {
			lowest, pages = last.Slot, 0
		}
		if pages++; pages > maxPagesOfSlot {
			return nil, fmt.Errorf("list the tree's transactions: %d pages do not go back from slot %d: the endpoint is wrong; another one is asked first now, so remove it if this goes on", pages, lowest)
		}
	}
}

func oldestFirst(slots []uint64) []uint64 {
	slices.Sort(slots)
	return slices.Compact(slots)
}

// readLeaves reads the leaves of the slots, in the order of the slots.
func (f *Follower) readLeaves(ctx context.Context, slots []uint64) (leaves []IndexedCommitment, unknownVersions uint64, err error) {
	found := make([][]IndexedCommitment, len(slots))
	var unknown atomic.Uint64
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readAhead)
	for i, slot := range slots {
		group.Go(func() error {
			block, err := f.Chain.Block(ctx, slot, f.Pool.MerkleTree)
			switch {
			case errors.Is(err, onchain.ErrBlockPruned):
				return fmt.Errorf("%w: block %d is gone: %w", errShort, slot, err)
			case err != nil:
				return fmt.Errorf("read block %d: %w", slot, err)
			}
			unknown.Add(block.UnknownVersions)
			found[i] = f.leaves(slot, block)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, 0, err
	}
	return slices.Concat(found...), unknown.Load(), nil
}

// leaves returns a block's leaves in execution order. It skips failed transactions, because they
// appended none, and instructions of the program's other pools, because these have their own
// trees.
func (f *Follower) leaves(slot uint64, b *onchain.Block) (out []IndexedCommitment) {
	for _, tx := range b.Transactions {
		if tx.Failed {
			continue
		}
		for _, ix := range tx.Instructions {
			if !ix.ProgramID.Equals(f.Pool.Profile.ProgramID) || !slices.Contains(ix.Accounts, f.Pool.MerkleTree) {
				continue
			}
			for _, leaf := range f.Pool.Profile.Leaves(ix.Data) {
				out = append(out, IndexedCommitment{Commitment: leaf, Slot: slot})
			}
		}
	}
	return out
}
