package shieldpool

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
