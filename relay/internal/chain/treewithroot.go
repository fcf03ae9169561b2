package chain

import (
	"context"
	"slices"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
)

// TreeWith returns a tree whose root history contains the root: the tree that Tree returns, or else
// the tree of any endpoint. If no tree contains the root, TreeWith returns a tree that was read
// after the call. This is the agreed tree if there is one, because its slot does not depend on a
// single endpoint. If there is none, it is the newest tree.
func (p *PoolReader) TreeWith(ctx context.Context, root [32]byte, maxAge time.Duration) (onchain.Snapshot, error) {
	s, err := p.Tree(ctx, maxAge)
	if err != nil || !s.Checked || s.Tree.LeavesUntilEviction(root) >= 0 {
		return s, err
	}
	if p.allEndpoints == nil {
		return p.Tree(ctx, 0)
	}
	r, err := p.readAll(ctx)
	if err != nil {
		return onchain.Snapshot{}, err
	}
	// An endpoint may be wrong about the slot and right about the root.
	for _, other := range slices.Concat(r.all, r.wrongSlot) {
		if other.Checked && other.Tree.LeavesUntilEviction(root) >= 0 {
			return other, nil
		}
	}
	if r.err == nil && r.agreedErr == nil && r.agreed.At.Equal(r.at) && !r.agreed.Doubtful && !r.agreed.Behind {
		return r.agreed, nil
	}
	return r.snapshot, r.err
}
