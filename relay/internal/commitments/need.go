package commitments

import "time"

// anyAge is the greatest age of a tree that a pass uses.
const anyAge = 10 * time.Second

// need is which tree a pass compares the leaves with: one of that slot or later, that was read at most
// maxAge before the pass, or after its start.
type need struct {
	slot   uint64
	maxAge time.Duration
}

var anyTree = need{maxAge: anyAge}

// upTo needs a tree with what the chain had at the slot, in whichever process it was read; 0 for one that is
// read anew.
func upTo(slot uint64) need {
	if slot == 0 {
		return need{}
	}
	return need{slot, anyAge}
}

// and returns what fulfils both.
func (n need) and(other need) need {
	return need{max(n.slot, other.slot), min(n.maxAge, other.maxAge)}
}
