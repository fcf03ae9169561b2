package commitments

import (
	"context"
	"encoding/hex"
	"slices"
	"time"

	"github.com/relaypool/relaypool/relay/merkle"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// maxTrials is the number of roots that one call of Processed computes at most. A root takes 32 hashes.
	maxTrials = 128
	// processedRetry is the time until clients ask again while no leaves are known.
	processedRetry = time.Second
)

// processed is a tree that continues the published leaves. No RPC method returns leaves of blocks that are
// not confirmed, so they are sought among the fleet's own submissions: the tree account's root history
// has a root for each leaf, which shows whose leaves came next.
type processed struct {
	tree merkle.Tree
	// leaves are the last leaves of the tree, which continue the published leaves with the root base.
	leaves []string
	base   [32]byte
	// wrong has the trials that failed with this tree.
	wrong map[trial]bool
	// readAt is when the tree account was read that the tree was last compared with.
	readAt time.Time
}

// trial is the question whether a submission, known by its first leaf, gave the tree the root.
type trial struct{ want, leaf [32]byte }

// Processed is a root that one endpoint has processed, and the leaves that its tree has beyond the
// published ones, in hexadecimal. They may be undone. FromIndex is the number of published leaves.
type Processed struct {
	onchain.Root
	FromIndex uint64
	Leaves    []string
}

// Processed returns the leaves that an endpoint has processed, as far as the fleet submitted them.
// Behind a leaf of others nothing is known until it is confirmed.
func (f *Follower) Processed(ctx context.Context) (Processed, error) {
	snap, err := f.Tree.ProcessedTree(ctx)
	if err != nil {
		return Processed{}, err
	}
	select {
	case f.processing <- struct{}{}:
	case <-ctx.Done():
		return Processed{}, ctx.Err()
	}
	defer func() { <-f.processing }()
	f.mu.Lock()
	base := f.published
	f.mu.Unlock()
	if base.tree == nil || !snap.Checked {
		return Processed{}, refusal.New(refusal.ChainUnavailable,
			"the relay has no leaves yet that the chain confirms: send the same request again in a moment").Retry(processedRetry)
	}
	p := &f.processed
	if !p.readAt.Equal(snap.At) || p.base != base.root {
		sent, err := f.Store.SentLeaves(ctx)
		if err != nil {
			return Processed{}, err
		}
		p.continueFrom(&base, snap.Tree)
		p.extend(snap.Tree, sent)
		p.readAt = snap.At
	}
	root := p.tree.Root()
	return Processed{
		Root:      onchain.Root{Root: merkle.Bytes(&root), Tree: f.Pool.MerkleTree, NextIndex: p.tree.NextIndex(), Slot: snap.Slot},
		FromIndex: base.next, Leaves: p.leaves,
	}, nil
}

// continueFrom makes the tree one that continues the published leaves and that the account confirms.
func (p *processed) continueFrom(base *published, account *shieldpool.TreeAccount) {
	p.base = base.root
	beyond := p.tree.NextIndex() - base.next
	own := p.tree.Root()
	if p.leaves != nil && p.tree.NextIndex() >= base.next && beyond <= uint64(len(p.leaves)) && hasRoot(account, base.next, base.root) && hasRoot(account, p.tree.NextIndex(), merkle.Bytes(&own)) {
		p.leaves = p.leaves[uint64(len(p.leaves))-beyond:]
		return
	}
	p.tree, p.leaves, p.wrong = *base.tree, []string{}, map[trial]bool{}
}

func hasRoot(account *shieldpool.TreeAccount, leaves uint64, root [32]byte) bool {
	got, ok := account.RootAt(leaves)
	return ok && got == root
}

// extend appends the leaves of sent submissions, in the order that the account's root history shows.
func (p *processed) extend(account *shieldpool.TreeAccount, sent [][][32]byte) {
	root := p.tree.Root()
	if !hasRoot(account, p.tree.NextIndex(), merkle.Bytes(&root)) {
		return // the account is older than the published leaves, or so much newer that it has other roots
	}
	for trials, found := 0, true; found; {
		found = false
		for _, leaves := range sent {
			want, ok := account.RootAt(p.tree.NextIndex() + uint64(len(leaves)))
			if !ok || len(leaves) == 0 || p.wrong[trial{want, leaves[0]}] || slices.Contains(p.leaves, hex.EncodeToString(leaves[0][:])) {
				continue
			}
			if trials++; trials > maxTrials || len(p.leaves)+len(leaves) > MaxRecent {
				return
			}
			if p.append(leaves, want) {
				found = true
			} else {
				p.wrong[trial{want, leaves[0]}] = true
			}
		}
	}
}

// append appends the leaves if the tree then has the root.
func (p *processed) append(leaves [][32]byte, want [32]byte) bool {
	next := p.tree
	for _, l := range leaves {
		if appendLeaf(&next, IndexedCommitment{Commitment: l}) != nil {
			return false
		}
	}
	if root := next.Root(); merkle.Bytes(&root) != want {
		return false
	}
	p.tree, p.wrong = next, map[trial]bool{}
	p.leaves = slices.Clip(p.leaves) // answers have the slice
	for _, l := range leaves {
		p.leaves = append(p.leaves, hex.EncodeToString(l[:]))
	}
	return true
}
