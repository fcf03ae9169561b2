package shieldpool

// LeavesUntilEviction returns how many more leaves may be appended before the root leaves the root
// history; −1 when the history does not contain it. All-zero entries are unused.
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
