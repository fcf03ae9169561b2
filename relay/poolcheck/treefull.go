package poolcheck

import "github.com/relaypool/relaypool/relay/merkle"

const (
	// treeCapacity is the number of leaves that a tree can contain.
	treeCapacity = uint64(1) << merkle.Height
	// MinFreeLeaves is the number of free leaves below which a tree counts as full: a thousandth
	// of all leaves. That number lasts for four hours at the chain's maximum of some 150
	// transactions a second with two leaves each, and for 24 days at one transaction a second.
	MinFreeLeaves = treeCapacity / 1024
)

// decideRoom decides whether a tree whose next leaf has the given index counts as full.
func (c *Check) decideRoom(nextIndex uint64) {
	c.State, c.Reason, c.Found, c.Remedy = OK, "", "enough leaves are free", ""
	if treeCapacity-nextIndex < MinFreeLeaves {
		c.State, c.Reason = Failed, ReasonTreeFull
		c.Found = "fewer"
		c.Remedy = "move to a pool with a new tree before this one accepts no more transactions"
	}
}
