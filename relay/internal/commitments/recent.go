package commitments

import (
	"encoding/hex"
	"slices"

	"github.com/relaypool/relaypool/relay/merkle"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// MaxRecent is the number of leaves that Since returns at most. A client that lacks more reads the
// list.
const MaxRecent = 256

// Recent is what a client that knows an older root lacks: the published leaves from FromIndex to
// NextIndex, in hexadecimal, and the root of the published leaves.
type Recent struct {
	Root                 [32]byte
	FromIndex, NextIndex uint64
	Leaves               []string
}

// newest is the end of the tree, kept in memory so that Since asks nobody.
type newest struct {
	// leaves are the last of those in the follower's tree, and next is their number.
	leaves []string
	next   uint64
	// counts has how many leaves the tree had when each of these roots was its root.
	counts map[[32]byte]uint64
}

// add adds the leaf with that index.
func (n *newest) add(index uint64, l IndexedCommitment) {
	if index != n.next {
		*n = newest{}
	}
	if len(n.leaves) == 2*MaxRecent {
		n.leaves = append(make([]string, 0, 2*MaxRecent), n.leaves[MaxRecent:]...) // what was published stays as it is
	}
	n.leaves, n.next = append(n.leaves, hex.EncodeToString(l.Commitment[:])), index+1
}

// addRoots adds the roots of a tree account in whose history the root of these leaves is. Roots of
// more leaves may be of a fork that dies.
func (n *newest) addRoots(t *shieldpool.TreeAccount) {
	counts := make(map[[32]byte]uint64, MaxRecent)
	for root, count := range n.counts {
		if count+MaxRecent >= n.next {
			counts[root] = count
		}
	}
	first := n.next - uint64(len(n.leaves))
	for count := min(t.NextIndex, n.next) + 1; count > first; {
		count--
		if root, ok := t.RootAt(count); ok {
			counts[root] = count
		}
	}
	n.counts = counts
}

// remember lets Since return the leaves of a tree that the chain has confirmed.
func (f *Follower) remember(c comparison) {
	if f.newest.next != c.pos.Leaves {
		return
	}
	f.newest.addRoots(c.snap.Tree)
	root, tree := f.tree.Root(), *f.tree
	r := published{newest: f.newest, root: merkle.Bytes(&root), tree: &tree}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.published = r
}

// forget starts with the tree's leaves from the index next on, because the others were not read or
// were replaced. Since returns nothing until they are confirmed.
func (f *Follower) forget(next uint64) {
	f.newest = newest{leaves: []string{}, next: next}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.published = published{}
}

// published is what Since returns leaves of. tree is never changed, and nil while nothing is published.
type published struct {
	newest
	root [32]byte
	tree *merkle.Tree
}

// findRecent returns the highest leaf index of each commitment among the leaves that the chain confirmed last.
func (f *Follower) findRecent(commitments [][32]byte) map[[32]byte]uint64 {
	f.mu.Lock()
	p := f.published
	f.mu.Unlock()
	found := make(map[[32]byte]uint64, len(commitments))
	for _, c := range commitments {
		text := hex.EncodeToString(c[:])
		index := p.next
		for _, leaf := range slices.Backward(p.leaves) {
			index--
			if leaf == text {
				found[c] = index
				break
			}
		}
	}
	return found
}

// Since returns the leaves that the chain confirmed last and that were appended after the root was
// the tree's; false when the root is not known, or too old.
func (f *Follower) Since(root [32]byte) (r Recent, ok bool) {
	f.mu.Lock()
	p := f.published
	f.mu.Unlock()
	from, ok := p.counts[root]
	first := p.next - uint64(len(p.leaves)) // the index of the oldest leaf in memory
	if !ok || from < first {
		return r, false
	}
	return Recent{Root: p.root, FromIndex: from, NextIndex: p.next, Leaves: p.leaves[from-first:]}, true
}
