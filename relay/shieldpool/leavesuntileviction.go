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

// WithHistory returns the tree with another root history. rootAt returns the root of the tree's first so many
// leaves; the zero root stands for one that is not known.
func (t *TreeAccount) WithHistory(rootAt func(leaves uint64) [32]byte) *TreeAccount {
	with := *t
	n := uint64(len(t.History))
	with.History = make([][32]byte, n)
	for age := range min(n, t.NextIndex+1) {
		with.History[(t.RootIndex+n-age)%n] = rootAt(t.NextIndex - age)
	}
	return &with
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
