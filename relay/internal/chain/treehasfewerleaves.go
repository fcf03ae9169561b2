package chain

import (
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
)

// After aloneAcceptedAfter without a confirmation of the known tree, a single endpoint's smaller
// tree is accepted. It is not accepted at once: a fork can remove leaves, but the endpoint may also
// lie. A tree with a doubtful slot has to wait equally long, and so have leaves that only one endpoint shows.
const aloneAcceptedAfter = 10 * time.Second

// replacesKnown reports whether the newest of all endpoints' snapshots replaces the known tree.
func (p *PoolReader) replacesKnown(newest onchain.Snapshot, all []onchain.Snapshot, at time.Time) bool {
	last := p.cached()
	if last == nil || !last.Checked || newest.Tree.NextIndex > last.Tree.NextIndex {
		return true
	}
	upToDate := 0 // endpoints that are not behind the known tree's slot
	for _, s := range all {
		if s.Slot >= last.Slot || !p.corroborated(last.Slot) {
			upToDate++
		}
	}
	unconfirmedFor := at.Sub(p.confirmedAt)
	switch {
	case unconfirmedFor >= slotMaxAge:
		return true
	case newest.Tree.NextIndex == last.Tree.NextIndex:
		return upToDate > 0
	default:
		return upToDate > 1 || upToDate == 1 && unconfirmedFor >= aloneAcceptedAfter
	}
}

// hasFewerLeaves reports whether the tree has fewer leaves than the known tree.
func (p *PoolReader) hasFewerLeaves(s onchain.Snapshot) bool {
	last := p.cached()
	return last != nil && last.Checked && s.Tree.NextIndex < last.Tree.NextIndex
}
