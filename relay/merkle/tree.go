package merkle

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
)

// Height is the number of levels between a leaf and the root.
const Height = 32

const capacity = uint64(1) << Height

// ErrFull is returned by Append for a tree that has 2^32 leaves.
var ErrFull = errors.New("merkle tree is full: it holds 2^32 leaves, the pool needs a new tree")

// Zero is the root of an empty subtree of the given level: 0 for a leaf, 32 for the empty tree. Any
// other level is an error of the caller and panics.
func Zero(level int) fr.Element {
	return zeros[level]
}

// Tree is an incremental Merkle tree of height 32 that keeps only what further appends need: the
// number of leaves and, for each level, the last complete left subtree. It is not safe for
// concurrent use.
type Tree struct {
	next     uint64
	frontier [Height]fr.Element
	root     fr.Element
	// rootIsCurrent is set while root belongs to the present leaves.
	rootIsCurrent bool
}

// NewTree returns the empty tree.
func NewTree() *Tree {
	return &Tree{}
}

// RestoreTree returns the tree from its NextIndex and Frontier, which were stored or read from the
// chain's tree account. A next above 2^32 is an error.
func RestoreTree(next uint64, frontier [Height]fr.Element) (*Tree, error) {
	if next > capacity {
		return nil, fmt.Errorf("restore merkle tree: next index must be at most 2^32, received %d", next)
	}
	return &Tree{next: next, frontier: frontier}, nil
}

// Append adds a leaf. It costs one hash on average, because a node is computed only when its
// subtree is complete; Root computes the root when it is called. The only error is ErrFull.
func (t *Tree) Append(leaf *fr.Element) error {
	if t.next == capacity {
		return ErrFull
	}
	node := *leaf
	level := bits.TrailingZeros64(^t.next)
	for i := range level {
		node = Hash2(&t.frontier[i], &node)
	}
	// The last leaf completes the root itself. It is stored in the top entry, whose former value
	// no later leaf can need.
	t.frontier[min(level, Height-1)] = node
	t.next++
	t.rootIsCurrent = false
	return nil
}

// Root returns the root over the present leaves. It costs up to 32 hashes after an append, and
// nothing when it is called again.
func (t *Tree) Root() fr.Element {
	if !t.rootIsCurrent {
		t.root = RootOf(t.next, &t.frontier)
		t.rootIsCurrent = true
	}
	return t.root
}

// NextIndex is the number of leaves, and so the index of the next one.
func (t *Tree) NextIndex() uint64 {
	return t.next
}

// Frontier returns, for each level i, the last complete left subtree of that level, which is used
// when bit i of NextIndex is set. The other entries have outdated values.
func (t *Tree) Frontier() [Height]fr.Element {
	return t.frontier
}

// RootOf computes the root from a leaf count and a frontier, for example for the self-check of the
// chain's tree account. The result has no meaning above 2^32 leaves.
func RootOf(next uint64, frontier *[Height]fr.Element) fr.Element {
	switch next {
	case 0:
		return zeros[Height]
	case capacity:
		return frontier[Height-1]
	}
	// No leaf has index next yet, so the subtree of level lowest that starts there is empty, and
	// its root is known.
	lowest := bits.TrailingZeros64(next)
	node := zeros[lowest]
	for i := lowest; i < Height; i++ {
		if next>>i&1 == 1 {
			node = Hash2(&frontier[i], &node)
		} else {
			node = Hash2(&node, &zeros[i])
		}
	}
	return node
}

// Path returns the sibling of each node from the leaf at index up to the root, as a client needs
// them to prove membership. It hashes the whole tree once, about one hash a leaf. An index outside
// leaves is an error.
func Path(leaves []fr.Element, index int) ([Height]fr.Element, error) {
	var siblings [Height]fr.Element
	if index < 0 || index >= len(leaves) {
		return siblings, fmt.Errorf("merkle path: index must be at least 0 and below the %d leaves, received %d", len(leaves), index)
	}
	nodes := append([]fr.Element(nil), leaves...)
	for level := range Height {
		siblings[level] = zeros[level]
		if sibling := index ^ 1; sibling < len(nodes) {
			siblings[level] = nodes[sibling]
		}
		nodes = parents(nodes, level)
		index >>= 1
	}
	return siblings, nil
}

// parents overwrites the nodes of a level with their parents.
func parents(nodes []fr.Element, level int) []fr.Element {
	if len(nodes)%2 == 1 {
		nodes = append(nodes, zeros[level])
	}
	for i := range len(nodes) / 2 {
		nodes[i] = Hash2(&nodes[2*i], &nodes[2*i+1])
	}
	return nodes[:len(nodes)/2]
}
