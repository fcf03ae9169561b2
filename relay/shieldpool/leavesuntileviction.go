package shieldpool

// RootAt returns the root of the tree's first so many leaves; false if the root history does not contain
// it now.
func (t *TreeAccount) RootAt(leaves uint64) (root [32]byte, ok bool) {
	n, age := uint64(len(t.History)), t.NextIndex-leaves
	if leaves > t.NextIndex || age >= n {
		return root, false
	}
	root = t.History[(t.RootIndex+n-age)%n]
	return root, root != [32]byte{}
}

// LeavesUntilEviction returns how many more leaves can be appended while the root history still
// contains the root; −1 if it does not contain the root now. All-zero entries of the history are
// unused.
func (t *TreeAccount) LeavesUntilEviction(root [32]byte) int {
	if root == ([32]byte{}) {
		return -1
	}
	n := len(t.History)
	for age := range n {
		if t.History[(int(t.RootIndex)+n-age)%n] == root { //nolint:gosec // RootIndex is below the length of the root history
			return n - 1 - age
		}
	}
	return -1
}
