package submission

import "github.com/relaypool/relaypool/relay/shieldpool"

// rootLeavesSoon reports whether the root history has room for less than a quarter of its leaves
// before it drops the root. It is false for an unknown tree.
func rootLeavesSoon(tree *shieldpool.TreeAccount, root [32]byte) bool {
	if tree == nil {
		return false
	}
	left := tree.LeavesUntilEviction(root)
	return left >= 0 && left < len(tree.History)/4
}
