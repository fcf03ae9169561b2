package chain

import (
	"context"
	"slices"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
)

// TreeWith returns a tree that has the root in its root history: the tree that Tree returns, or
// else any endpoint's. When all trees lack the root, TreeWith returns one that was read after the
// call: the agreed tree, whose slot does not rest on one endpoint, or else the newest.
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
