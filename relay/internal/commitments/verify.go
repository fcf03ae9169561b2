package commitments

import (
	"bytes"
	"context"

	"github.com/relaypool/relaypool/relay/merkle"
)

// Verified is what Verify found: the root of all stored leaves, and how many checkpoints there are
// and are wrong.
type Verified struct {
	Root               [32]byte
	Checkpoints, Wrong int
}

// Verify hashes all stored leaves and compares the result with the checkpoints, or, to repair
// them, writes these anew. It calls progress with the number of leaves that it has hashed.
func Verify(ctx context.Context, s Store, pos Position, repair bool, progress func(uint64)) (v Verified, err error) {
	if repair {
		if err := s.DropCheckpoints(ctx); err != nil {
			return v, err
		}
	}
	tree := merkle.NewTree()
	for tree.NextIndex() < pos.Leaves {
		leaves, err := s.Read(ctx, pos.Generation, tree.NextIndex(), int(min(defaultCheckpointEvery, pos.Leaves-tree.NextIndex())))
		if err == nil && len(leaves) == 0 {
			err = ErrMoved // leaves were removed meanwhile
		}
		if err != nil {
			return v, err
		}
		for _, l := range leaves {
			if err := appendLeaf(tree, l); err != nil {
				return v, err
			}
		}
		if err := v.checkpoint(ctx, s, pos, tree, repair); err != nil {
			return v, err
		}
		progress(tree.NextIndex())
	}
	root := tree.Root()
	v.Root = merkle.Bytes(&root)
	return v, nil
}

func (v *Verified) checkpoint(ctx context.Context, s Store, pos Position, tree *merkle.Tree, repair bool) error {
	if tree.NextIndex()%defaultCheckpointEvery != 0 {
		return nil
	}
	want := checkpointOf(tree)
	if repair {
		v.Checkpoints++
		return s.AddCheckpoint(ctx, pos.Generation, want)
	}
	stored, err := s.Checkpoint(ctx, pos.Generation, want.Leaves)
	if err != nil || stored.Leaves != want.Leaves {
		return err
	}
	v.Checkpoints++
	if !bytes.Equal(stored.Frontier, want.Frontier) {
		v.Wrong++
	}
	return nil
}
