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

// Zero returns the root of an empty subtree of the given level. Level 0 is a leaf, and level 32 is
// the whole tree. Zero panics for a level outside 0 to 32.
func Zero(level int) fr.Element {
	return zeros[level]
}

// Tree is an incremental Merkle tree of height 32 that keeps only what further appends need: the
// number of leaves and, for each level, the root of the last complete left subtree. It is not safe
// for concurrent use.
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
// subtree is complete. The root of an incomplete tree is computed by Root. The only error is
// ErrFull.
func (t *Tree) Append(leaf *fr.Element) error {
	if t.next == capacity {
		return ErrFull
	}
	node := *leaf
	level := bits.TrailingZeros64(^t.next)
	for i := range level {
		node = Hash2(&t.frontier[i], &node)
	}
	// Leaf 2^32-1 completes the whole tree. The tree's root is then stored in the top entry,
	// because no later append needs the former value of that entry.
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

// Frontier returns one entry for each level i. If bit i of NextIndex is set, the entry is the root
// of the last complete left subtree of that level. If the bit is not set, the entry is outdated and
// not used. Entry 31 of a full tree is an exception: it is the tree's root.
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
	// The leaf with the index next does not exist yet. So the subtree of level startLevel at this
	// index is empty, and its root is a constant.
	startLevel := bits.TrailingZeros64(next)
	node := zeros[startLevel]
	for i := startLevel; i < Height; i++ {
		if next>>i&1 == 1 {
			node = Hash2(&frontier[i], &node)
		} else {
			node = Hash2(&node, &zeros[i])
		}
	}
	return node
}

// Path returns the siblings of the nodes from the leaf at index up to the root. A client needs
// these siblings to prove membership. Path hashes the whole tree, about one hash for each leaf. It
// returns an error if no leaf has the index.
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
