package commitments

import "time"

// maxTreeAge is the greatest age of a tree that a pass uses.
const maxTreeAge = 10 * time.Second

// need is which tree a pass compares the leaves with: one of that slot or later, 0 for any, that was read at
// most maxAge before the pass. Without maxAge it is read after the pass has started.
type need struct {
	slot   uint64
	maxAge time.Duration
}

// recentTree is what every pass needs.
var recentTree = need{maxAge: maxTreeAge}

// upTo needs a tree of the slot or later, read by any process. If the slot is 0, it is not known, and the tree
// is read anew.
func upTo(slot uint64) need {
	if slot == 0 {
		return need{}
	}
	return need{slot, maxTreeAge}
}

// and returns what fulfils both.
func (n need) and(other need) need {
	return need{max(n.slot, other.slot), min(n.maxAge, other.maxAge)}
}
