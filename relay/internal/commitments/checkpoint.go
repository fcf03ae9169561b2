package commitments

import (
	"context"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"github.com/relaypool/relaypool/relay/merkle"
)

// defaultCheckpointEvery is the number of leaves between two checkpoints. Hashing so many takes
// about 50 ms.
const defaultCheckpointEvery = 4096

// Checkpoint is the state of the tree after its first leaves, from which more can be appended
// without hashing those again. Frontier is merkle.Tree's, each entry as 32 bytes.
type Checkpoint struct {
	Leaves   uint64
	Frontier []byte
}

func checkpointOf(t *merkle.Tree) Checkpoint {
	c := Checkpoint{Leaves: t.NextIndex()}
	for _, node := range t.Frontier() {
		b := merkle.Bytes(&node)
		c.Frontier = append(c.Frontier, b[:]...)
	}
	return c
}

// tree restores the tree. The Checkpoint of no leaves is the empty tree.
func (c Checkpoint) tree() (*merkle.Tree, error) {
	if c.Leaves == 0 {
		return merkle.NewTree(), nil
	}
	const size = 32
	if len(c.Frontier) != merkle.Height*size {
		return nil, fmt.Errorf("checkpoint after %d leaves: frontier has %d bytes", c.Leaves, len(c.Frontier))
	}
	var frontier [merkle.Height]fr.Element
	for i := range frontier {
		node, err := merkle.FromBytes([size]byte(c.Frontier[i*size:]))
		if err != nil {
			return nil, fmt.Errorf("checkpoint after %d leaves: %w", c.Leaves, err)
		}
		frontier[i] = node
	}
	return merkle.RestoreTree(c.Leaves, frontier)
}

// restore returns the tree of the newest checkpoint that has at most so many leaves.
func (f *Follower) restore(ctx context.Context, generation, most uint64) (*merkle.Tree, error) {
	if most == 0 {
		return merkle.NewTree(), nil
	}
	c, err := f.Store.Checkpoint(ctx, generation, most)
	if err != nil {
		return nil, err
	}
	return c.tree()
}

// appendStored appends a stored leaf, and adds the checkpoint that is due after it.
func (f *Follower) appendStored(ctx context.Context, t *merkle.Tree, generation uint64, l IndexedCommitment) error {
	if err := appendLeaf(t, l); err != nil || t.NextIndex()%f.CheckpointEvery != 0 {
		return err
	}
	return f.Store.AddCheckpoint(ctx, generation, checkpointOf(t))
}

// rebuild hashes all stored leaves again. A follower does so once before it calls leaves wrong:
// the checkpoint that it started from may be.
func (f *Follower) rebuild(ctx context.Context, pos Position) error {
	f.Log.WarnContext(ctx, "commitments differ from the chain; hashing all of them again", "leaves", pos.Leaves)
	if err := f.Store.DropCheckpoints(ctx); err != nil {
		return err
	}
	tree := merkle.NewTree()
	err := f.walk(ctx, pos, 0, func(l IndexedCommitment) error { return f.appendStored(ctx, tree, pos.Generation, l) })
	if err != nil {
		return err
	}
	f.tree, f.generation, f.rebuilt = tree, pos.Generation, true
	f.forget(tree.NextIndex())
	return nil
}
