package chain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
)

// An endpoint can append invented leaves to the tree and compute a valid root.
// Clients therefore prove against a tree that two endpoints show, and stored leaves are
// compared with such a tree.

const (
	// maxTreeLag is the number of slots that an endpoint may be behind another and still
	// count.
	maxTreeLag = 100
	// agreedRootTimeout bounds a client's wait for the answers of all endpoints.
	agreedRootTimeout = 500 * time.Millisecond
)

// errTreesDiffer reports that no two endpoints return the same tree.
var errTreesDiffer = fmt.Errorf("%w: the endpoints show different trees: GET /health names those that contradict each other", onchain.ErrUnavailable)

// AgreedTree returns the newest tree that two endpoints show, read after the call: the root
// of one is in the root history of the other. A tree that only one endpoint shows counts if it
// is the only one that continues the last agreed tree (after ten seconds if its slot is doubtful),
// or if no other endpoint has answered for a minute. With a single endpoint configured, AgreedTree
// returns what Tree returns.
func (p *PoolReader) AgreedTree(ctx context.Context) (onchain.Snapshot, error) {
	if p.allEndpoints == nil {
		return p.Tree(ctx, 0)
	}
	if p.cached() == nil {
		if _, err := p.Tree(ctx, 0); err != nil {
			return onchain.Snapshot{}, err
		}
	}
	r, err := p.readAll(ctx)
	if err != nil {
		return onchain.Snapshot{}, err
	}
	return r.agreed, r.agreedErr
}

// agreedRoot returns the agreed tree instead of the snapshot s of one endpoint. If there is no
// agreed tree, or the other endpoints are slow, it may return s.
func (p *PoolReader) agreedRoot(ctx context.Context, s onchain.Snapshot) onchain.Snapshot {
	if p.allEndpoints == nil || !s.Checked {
		return s
	}
	last := p.lastAgreed()
	if last != nil && last.Tree.Root == s.Tree.Root {
		return s
	}
	ctx, cancel := context.WithTimeout(ctx, agreedRootTimeout)
	defer cancel()
	if agreed, err := p.AgreedTree(ctx); err == nil {
		return agreed
	}
	if last != nil && p.now().Sub(last.At) < slotMaxAge {
		return *last
	}
	return s
}

func (p *PoolReader) lastAgreed() *onchain.Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.agreed
}

// agree finds the agreed tree among those of one read of all endpoints, and stores it. The caller
// holds p.updating.
func (p *PoolReader) agree(all []onchain.Snapshot, at time.Time) (onchain.Snapshot, error) {
	last := p.lastAgreed()
	s, ok := agreedTree(all, last, at)
	switch {
	case ok:
		s.At, s.Behind = at, s.Behind && p.slotIsOld(s.Slot, at)
		p.mu.Lock()
		newest := p.last
		p.agreed = &s
		p.mu.Unlock()
		if s.Checked && (last == nil || last.Doubtful || last.Tree.Root != s.Tree.Root) && (newest == nil || newest.Doubtful || newest.Slot < s.Slot) {
			p.changed(s, nil) // clients get its root, so other relays need its slot
		}
		return s, nil
	case last != nil && at.Sub(last.At) < slotMaxAge:
		return *last, nil
	default:
		return onchain.Snapshot{}, unavailable(errTreesDiffer)
	}
}

// agreedTree chooses from the trees of all endpoints that answered. last is the last agreed tree,
// nil for none.
func agreedTree(all []onchain.Snapshot, last *onchain.Snapshot, at time.Time) (onchain.Snapshot, bool) {
	all = upToDateTrees(all)
	var confirmed, continuing []onchain.Snapshot
	for i, s := range all {
		s.Behind = true // unless the clock or another endpoint shows otherwise
		if last != nil && historyHas(s, *last) {
			continuing = append(continuing, s)
		}
		if slot, same := secondSlot(all, i); slot > 0 {
			s.Slot, s.Doubtful, s.Behind = slot, false, !same
			confirmed = append(confirmed, s)
		}
	}
	agreed := newest(confirmed)
	switch {
	case agreed != nil && (last == nil || agreed.Tree.NextIndex >= last.Tree.NextIndex):
		return *agreed, true
	case len(continuing) == 1:
		// Other relays do not learn a doubtful slot, so they would refuse the root as stale.
		return continuing[0], !continuing[0].Doubtful || at.Sub(last.At) >= shrinkAcceptedAfter
	case len(continuing) > 1: // all of them contain the last agreed root
		return *last, true
	case agreed != nil:
		return *agreed, true
	case len(all) == 1 && (last == nil || at.Sub(last.At) >= slotMaxAge):
		return all[0], true
	default:
		return onchain.Snapshot{}, false
	}
}

// upToDateTrees returns the trees of endpoints that are not far behind another one. Trees
// that fail their self-check are returned only when all do.
func upToDateTrees(all []onchain.Snapshot) []onchain.Snapshot {
	if checked := slices.DeleteFunc(slices.Clone(all), func(s onchain.Snapshot) bool { return !s.Checked }); len(checked) > 0 {
		all = checked
	}
	var highest uint64
	for _, s := range all {
		if !s.Doubtful { // a slot ahead of the chain would make the others seem behind
			highest = max(highest, s.Slot)
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(s onchain.Snapshot) bool { return s.Slot+maxTreeLag < highest })
}

// secondSlot returns the slot that a second endpoint confirms for the tree with index i: the lower
// slot of this tree and of another one that has its root; 0 when there is none. same reports that
// another tree has the same newest root.
func secondSlot(all []onchain.Snapshot, i int) (slot uint64, same bool) {
	for k, o := range all {
		if k != i && historyHas(o, all[i]) {
			slot, same = max(slot, min(o.Slot, all[i].Slot)), same || o.Tree.Root == all[i].Tree.Root
		}
	}
	return slot, same
}

// historyHas reports whether a's root history contains b's root.
func historyHas(a, b onchain.Snapshot) bool { return a.Tree.LeavesUntilEviction(b.Tree.Root) >= 0 }

func newest(snapshots []onchain.Snapshot) *onchain.Snapshot {
	if len(snapshots) == 0 {
		return nil
	}
	best := snapshots[0]
	for _, s := range snapshots[1:] {
		if newer(s, best) {
			best = s
		}
	}
	return &best
}

// replacesKnown reports whether the newest of all endpoints' snapshots replaces the known tree.
func (p *PoolReader) replacesKnown(newest onchain.Snapshot, all []onchain.Snapshot, at time.Time) bool {
	last := p.cached()
	if last == nil || !last.Checked || newest.Tree.NextIndex > last.Tree.NextIndex {
		return true
	}
	disagreeing := 0 // endpoints that are not behind and do not report the known tree
	for _, s := range all {
		if s.Slot >= last.Slot || !p.corroborated(last.Slot) {
			disagreeing++
		}
	}
	unconfirmedFor := at.Sub(p.confirmedAt)
	switch {
	case unconfirmedFor >= slotMaxAge:
		return true
	case newest.Tree.NextIndex == last.Tree.NextIndex:
		return disagreeing > 0
	default:
		return disagreeing > 1 || disagreeing == 1 && unconfirmedFor >= shrinkAcceptedAfter
	}
}

// hasFewerLeaves reports whether the tree has fewer leaves than the one that is known.
func (p *PoolReader) hasFewerLeaves(s onchain.Snapshot) bool {
	last := p.cached()
	return last != nil && last.Checked && s.Tree.NextIndex < last.Tree.NextIndex
}

// shrinkAcceptedAfter is the time without a confirmation of the known tree after which a single
// endpoint that reports fewer leaves is believed. A fork removes leaves, but an endpoint may
// also lie.
const shrinkAcceptedAfter = 10 * time.Second

// newer reports whether a has more leaves than b, or as many at a later slot.
func newer(a, b onchain.Snapshot) bool {
	return a.Checked && (!b.Checked || cmp.Or(cmp.Compare(a.Tree.NextIndex, b.Tree.NextIndex), cmp.Compare(a.Slot, b.Slot)) > 0)
}
