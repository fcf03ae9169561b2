package chain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// A lying endpoint can show a tree with invented leaves and compute a valid root for it. Clients
// therefore prove against a tree that two endpoints show, unless they ask for a processed root, and stored
// leaves are compared with such a tree.

// maxTreeLag is the greatest lag, in slots behind another endpoint, at which an endpoint's tree
// still counts.
const maxTreeLag = 100

// errTreesDiffer reports that no two endpoints return the same tree.
var errTreesDiffer = fmt.Errorf("%w: the endpoints show different trees: GET /health names those that contradict each other", onchain.ErrUnavailable)

// AgreedTree returns the newest tree that two endpoints show. If this process, or another one of the fleet,
// has read one of minSlot or later at most maxAge ago, AgreedTree returns that. Otherwise, and always with
// maxAge 0, it reads the tree at every endpoint; the result may then be of an earlier slot than
// minSlot. A second endpoint shows a tree if its root history contains the tree's root, at the same number of
// leaves. A tree that only one endpoint shows counts in two cases, and is provisional until no other endpoint
// has answered for ten seconds. First, it is the only tree whose root history contains the last agreed root; if
// its slot is doubtful, ten seconds must have passed since the last agreement. Second, no other endpoint
// answers, and there was no agreement in the last minute. If no tree counts, AgreedTree returns the last
// agreed tree: for up to a minute, or, contested, as long as several root histories contain its root. A tree of
// one endpoint is dropped, and the last of two used, as soon as two agree or another one contradicts it. With a
// single endpoint configured, what that one shows is agreed.
func (p *PoolReader) AgreedTree(ctx context.Context, minSlot uint64, maxAge time.Duration) (onchain.Snapshot, error) {
	since := p.now()
	for {
		if s := p.recentTree(minSlot, maxAge); s != nil {
			return *s, nil
		}
		done := p.flight.DoChan("agreed", func() (any, error) { return p.readForFleet(context.WithoutCancel(ctx), minSlot, maxAge), nil })
		select {
		case <-ctx.Done():
			return onchain.Snapshot{}, unavailable(ctx.Err())
		case r := <-done:
			if got, ok := r.Val.(reading); ok && !got.at.Before(since) {
				return got.agreed, got.agreedErr
			}
		}
	}
}

// recentTree returns the agreed tree if AgreedTree may return it without a read; nil if not.
func (p *PoolReader) recentTree(minSlot uint64, maxAge time.Duration) *onchain.Snapshot {
	s := p.lastAgreed()
	if p.allEndpoints == nil {
		s = p.cached()
	}
	if s == nil || !s.Checked || s.Doubtful || s.Slot < minSlot || maxAge <= 0 || p.now().Sub(s.At) > maxAge || p.knowsMoreLeaves(s) {
		return nil
	}
	return s
}

// knowsMoreLeaves reports whether an endpoint shows more leaves than the agreed tree has: another endpoint may
// show old content at a new slot, and may soon agree.
func (p *PoolReader) knowsMoreLeaves(agreed *onchain.Snapshot) bool {
	known := p.cached()
	return known != nil && known.Checked && known.Tree.NextIndex > agreed.Tree.NextIndex
}

// readAgreed reads the tree anew, and returns it as agreed.
func (p *PoolReader) readAgreed(ctx context.Context) reading {
	at := p.now()
	if p.allEndpoints == nil || p.cached() == nil {
		if s, err := p.Tree(ctx, 0); err != nil || p.allEndpoints == nil {
			return reading{at: at, agreed: s, agreedErr: err}
		}
	}
	r, err := p.readAll(ctx)
	if err != nil {
		return reading{at: at, agreedErr: err}
	}
	return r
}

func (p *PoolReader) lastAgreed() *onchain.Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.agreed
}

// agree stores and returns the tree that agreedTree chooses from one read of all endpoints. If it
// chooses none, agree returns the last agreed tree, if that is recent. The caller holds p.updating.
func (p *PoolReader) agree(all []onchain.Snapshot, at time.Time) (onchain.Snapshot, error) {
	last := p.lastAgreed()
	if last != nil && !last.Corroborated && superseded(*last, all) {
		last = p.shownByTwo
	}
	s, ok := agreedTree(all, last, at)
	switch {
	case ok:
		s.At, s.Behind = at, s.Contested || s.Behind && p.slotIsOld(s.Slot, at)
		s.Provisional = !s.Corroborated && !p.alone.believed(at)
		if s.Corroborated {
			p.shownByTwo = &s
		}
		p.mu.Lock()
		newest := p.last
		p.agreed = &s
		p.mu.Unlock()
		if s.Checked && (last == nil || last.Doubtful || last.Tree.Root != s.Tree.Root) && (newest == nil || newest.Doubtful || newest.Slot < s.Slot) {
			// Clients get this tree's root, so other relays have to learn its slot.
			p.changed(s, nil)
		}
		return s, nil
	case last != nil && at.Sub(last.At) < slotMaxAge:
		kept := *last
		kept.Provisional = !kept.Corroborated
		p.setAgreed(&kept)
		return kept, nil
	default:
		p.setAgreed(last)
		return onchain.Snapshot{}, unavailable(errTreesDiffer)
	}
}

func (p *PoolReader) setAgreed(s *onchain.Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.agreed = s
}

// alone is the only endpoint that has shown a tree since the read at that time; a zero time means that there are
// several. It is not believed at once: a lying endpoint may wait for a read that the others fail to answer.
type alone struct {
	endpoint int
	since    time.Time
}

// note notes which endpoints showed a tree in a read, and were not far behind others.
func (a *alone) note(endpoints []int, at time.Time) {
	switch {
	case len(endpoints) > 1:
		*a = alone{}
	case len(endpoints) == 1 && (a.since.IsZero() || a.endpoint != endpoints[0]):
		*a = alone{endpoints[0], at}
	}
}

// believed reports whether the endpoint has been alone for so long that its word counts.
func (a *alone) believed(at time.Time) bool {
	return !a.since.IsZero() && at.Sub(a.since) >= aloneAcceptedAfter
}

// agreedTree chooses from the trees of all endpoints that answered, by the rules of AgreedTree. It
// returns false when no tree counts. The parameter last is the last agreed tree, nil for none.
func agreedTree(all []onchain.Snapshot, last *onchain.Snapshot, at time.Time) (onchain.Snapshot, bool) {
	all = upToDateTrees(all)
	agreed := newestShownByTwo(all)
	var continuing []onchain.Snapshot
	for _, s := range all {
		s.Behind = true // until, in agree, the slot estimate shows the opposite
		if last != nil && historyHas(s, *last) {
			continuing = append(continuing, s)
		}
	}
	switch {
	case agreed != nil && (last == nil || agreed.Tree.NextIndex >= last.Tree.NextIndex):
		return *agreed, true
	case agreed != nil && twoHave(all, *agreed, last.Slot): // a fork removed other leaves
		return *agreed, true
	case len(continuing) == 1:
		// A tree with a doubtful slot has to wait: other relays do not learn that slot, so they
		// would refuse the tree's root as stale.
		return continuing[0], !continuing[0].Doubtful || at.Sub(last.At) >= aloneAcceptedAfter
	case len(continuing) > 1: // they differ, but all of them contain the last agreed root
		contested := *last
		slices.SortFunc(continuing, func(a, b onchain.Snapshot) int { return cmp.Compare(b.Slot, a.Slot) })
		contested.Slot, contested.Contested, contested.Corroborated = max(last.Slot, continuing[1].Slot), true, true
		contested.Tree = withRootsOfTwo(contested.Tree, all)
		return contested, true
	case agreed != nil:
		return *agreed, true
	case len(all) == 1 && (last == nil || at.Sub(last.At) >= slotMaxAge):
		return all[0], true
	default:
		return onchain.Snapshot{}, false
	}
}

// twoHave reports whether two endpoints show just the leaves of s, at the slot or later.
func twoHave(all []onchain.Snapshot, s onchain.Snapshot, slot uint64) bool {
	n := 0
	for _, o := range all {
		if sameLeaves(o, s) && o.Slot >= slot {
			n++
		}
	}
	return n > 1
}

// newestShownByTwo returns the newest tree that two endpoints show, with those roots of its history that two of
// them show; nil if there is none.
func newestShownByTwo(all []onchain.Snapshot) *onchain.Snapshot {
	var confirmed []onchain.Snapshot
	for i, s := range all {
		if slot, same := confirmedSlot(all, i); slot > 0 {
			s.Slot, s.Doubtful, s.Behind, s.Corroborated = slot, false, !same, true
			confirmed = append(confirmed, s)
		}
	}
	s := newest(confirmed)
	if s != nil {
		s.Tree = withRootsOfTwo(s.Tree, all)
	}
	return s
}

// withRootsOfTwo returns the tree with its root and those older ones that two endpoints show.
func withRootsOfTwo(t *shieldpool.TreeAccount, all []onchain.Snapshot) *shieldpool.TreeAccount {
	return t.WithHistory(func(leaves uint64) [32]byte {
		if leaves == t.NextIndex {
			return t.Root
		}
		return rootOfTwo(all, leaves)
	})
}

// upToDateTrees returns the trees of endpoints that are not far behind another one. Trees that fail
// their self-check are returned only when all trees fail it.
func upToDateTrees(all []onchain.Snapshot) []onchain.Snapshot {
	if checked := slices.DeleteFunc(slices.Clone(all), func(s onchain.Snapshot) bool { return !s.Checked }); len(checked) > 0 {
		all = checked
	}
	lowest := lowestUpToDate(all)
	return slices.DeleteFunc(slices.Clone(all), func(s onchain.Snapshot) bool { return s.Slot < lowest })
}

// lowestUpToDate returns the lowest slot that is not far behind those of the trees.
func lowestUpToDate(all []onchain.Snapshot) uint64 {
	var highest uint64
	for _, s := range all {
		if !s.Doubtful { // a slot ahead of the chain would make the others seem behind
			highest = max(highest, s.Slot)
		}
	}
	return highest - min(highest, maxTreeLag)
}

// confirmedSlot returns the slot that another endpoint confirms for the tree with index i; 0 when
// none does. An endpoint confirms the tree if its root history contains the tree's root; see historyHas. The
// confirmed slot is then the lower of the two slots. The result same is true if another tree has
// the same leaves.
func confirmedSlot(all []onchain.Snapshot, i int) (slot uint64, same bool) {
	for k, o := range all {
		if k != i && historyHas(o, all[i]) {
			slot, same = max(slot, min(o.Slot, all[i].Slot)), same || sameLeaves(o, all[i])
		}
	}
	return slot, same
}

// historyHas reports whether a's root history contains b's root, at the same number of leaves. A tree that leaves of
// the empty value are appended to keeps its root.
func historyHas(a, b onchain.Snapshot) bool {
	root, ok := a.Tree.RootAt(b.Tree.NextIndex)
	return ok && root == b.Tree.Root
}

// sameLeaves reports whether the trees have the same leaves.
func sameLeaves(a, b onchain.Snapshot) bool {
	return a.Tree.Root == b.Tree.Root && a.Tree.NextIndex == b.Tree.NextIndex
}

// superseded reports whether s, which one endpoint alone showed, does not count any more: two endpoints show the
// same tree, or one has another root than s at the highest number of leaves that both have.
func superseded(s onchain.Snapshot, all []onchain.Snapshot) bool {
	all = upToDateTrees(all)
	return newestShownByTwo(all) != nil || slices.ContainsFunc(all, func(o onchain.Snapshot) bool {
		leaves := min(s.Tree.NextIndex, o.Tree.NextIndex)
		mine, ok := s.Tree.RootAt(leaves)
		other, known := o.Tree.RootAt(leaves)
		return ok && known && mine != other
	})
}

// rootOfTwo returns the root that two endpoints show for so many leaves; zero if no two show the same.
func rootOfTwo(all []onchain.Snapshot, leaves uint64) [32]byte {
	for i, a := range all {
		root, ok := a.Tree.RootAt(leaves)
		if ok && slices.ContainsFunc(all[i+1:], func(b onchain.Snapshot) bool {
			other, ok := b.Tree.RootAt(leaves)
			return ok && other == root
		}) {
			return root
		}
	}
	return [32]byte{}
}

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

// newer reports whether a has more leaves than b, or as many at a later slot. A tree that passes
// its self-check is newer than one that fails it.
func newer(a, b onchain.Snapshot) bool {
	return a.Checked && (!b.Checked || cmp.Or(cmp.Compare(a.Tree.NextIndex, b.Tree.NextIndex), cmp.Compare(a.Slot, b.Slot)) > 0)
}
