package commitments

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/relaypool/relaypool/relay/merkle"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// maxTrials is the number of roots that are computed at most for one read of the tree account. A root
	// takes 32 hashes.
	maxTrials = 128
	// processedTimeout bounds a read, which serves all who wait for it.
	processedTimeout = 5 * time.Second
	// processedRetry is the time until clients ask again when there is no answer.
	processedRetry = time.Second
	// processedPoll is the time between two looks for a root.
	processedPoll = 50 * time.Millisecond
	// processedRootAge is the time in which a processed root is confirmed, or its fork has died.
	processedRootAge = 30 * time.Second
	// behindFor is the time after which an older slot counts: the newer one may have been wrong.
	behindFor = time.Second
)

// Processed is a root that one endpoint has processed, and the leaves that its tree has beyond the
// published ones. They may be undone. FromIndex is the number of published leaves. The root is in the root
// history at Slot, and may not be the newest there.
type Processed struct {
	onchain.Root
	FromIndex uint64
	Leaves    [][32]byte
}

// processed is a tree that continues the published leaves. No RPC method returns leaves of blocks that are
// not confirmed, so they are sought among the fleet's own submissions: the tree account's root history
// has a root for each leaf, which shows whose leaves came next.
type processed struct {
	tree merkle.Tree
	// leaves are the last leaves of the tree, which continue the published leaves with the root base.
	leaves [][32]byte
	base   [32]byte
	// wrong has the trials that failed with this tree, and found the roots of those that succeeded.
	wrong map[trial]bool
	found [][32]byte
	// account is the newest tree account. The tree was last compared with the one that was read at comparedAt.
	account    onchain.Snapshot
	comparedAt time.Time
}

// trial is the question whether these leaves gave the tree the root.
type trial struct {
	want   [32]byte
	leaves [2][32]byte
}

// Processed returns the leaves that an endpoint has processed, as far as the fleet submitted them. What
// follows a leaf of others is not known until that leaf is in a block that the index has read. It fails with
// chain_unavailable while there is no such tree.
func (f *Follower) Processed(ctx context.Context) (Processed, error) {
	done := f.processedReads.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), processedTimeout)
		defer cancel()
		return f.readProcessed(ctx)
	})
	select {
	case <-ctx.Done():
		return Processed{}, noProcessedRoot(ctx.Err())
	case r := <-done:
		p, _ := r.Val.(Processed)
		return p, r.Err
	}
}

func noProcessedRoot(cause error) error {
	return refusal.New(refusal.ChainUnavailable,
		"the relay knows no processed root now: ask again in a moment, or for the confirmed root").
		Retry(processedRetry).Because(cause)
}

// IsProcessed reports whether Processed found the root within processedRootAge, in this process or, as far
// as this process can find it too, in another one that told a client. It looks until ctx ends if the
// endpoint has the root.
func (f *Follower) IsProcessed(ctx context.Context, root [32]byte) bool {
	for {
		if f.wasProcessed(root) {
			return true
		}
		snap, err := f.Tree.ProcessedTree(ctx)
		if err != nil || snap.Tree.LeavesUntilEviction(root) < 0 {
			return false
		}
		_, _ = f.Processed(ctx) // what it finds is looked up; a failure may pass
		select {                // a read computes only some roots
		case <-ctx.Done():
			return f.wasProcessed(root)
		case <-time.After(processedPoll):
		}
	}
}

func (f *Follower) wasProcessed(root [32]byte) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, ok := f.processedRoots[root]
	return ok && f.Now().Sub(at) < processedRootAge
}

// readProcessed runs only once at a time.
func (f *Follower) readProcessed(ctx context.Context) (Processed, error) {
	snap, err := f.Tree.ProcessedTree(ctx)
	if err != nil {
		return Processed{}, err
	}
	f.mu.Lock()
	base := f.published
	f.mu.Unlock()
	p := &f.processed
	// An endpoint that is behind the last one does not show that a fork has died.
	if p.account.Tree == nil || snap.Slot >= p.account.Slot || snap.At.Sub(p.account.At) > behindFor {
		p.account = snap
	}
	if base.tree == nil || !p.account.Checked || !hasRoot(p.account.Tree, base.next, base.root) {
		return Processed{}, noProcessedRoot(nil)
	}
	if !p.comparedAt.Equal(p.account.At) || p.base != base.root {
		candidates, err := f.candidates(ctx, &base)
		if err != nil {
			return Processed{}, err
		}
		restarted := p.continueFrom(&base)
		p.extend(candidates)
		p.comparedAt = p.account.At
		f.rememberProcessed(restarted)
	}
	root := p.tree.Root()
	return Processed{
		Root:      onchain.Root{Root: merkle.Bytes(&root), Tree: f.Pool.MerkleTree, NextIndex: p.tree.NextIndex(), Slot: p.account.Slot},
		FromIndex: base.next, Leaves: p.leaves,
	}, nil
}

// rememberProcessed lets IsProcessed know the roots that were found. It forgets those of a fork that died
// and, so that no endpoint can keep up a false order of leaves, those that are too old.
func (f *Follower) rememberProcessed(forkDied bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.Now()
	for root, at := range f.processedRoots {
		if now.Sub(at) >= processedRootAge || forkDied && !slices.Contains(f.processed.found, root) {
			delete(f.processedRoots, root)
		}
	}
	for _, root := range f.processed.found {
		if _, known := f.processedRoots[root]; !known {
			f.processedRoots[root] = now
		}
	}
	f.processed.found = nil
}

// candidates returns leaves that may come next, the most likely first, as they are appended: one alone, or
// the two of a submission.
func (f *Follower) candidates(ctx context.Context, base *published) (all [][][32]byte, err error) {
	sent, err := f.Store.SentLeaves(ctx) // before the stored leaves, so that none is in neither
	if err != nil {
		return nil, err
	}
	for _, l := range f.processed.leaves { // when a fork dies, its first leaves are often those of the next
		all = append(all, [][32]byte{l})
	}
	pos, err := f.Store.Position(ctx)
	if err != nil {
		return nil, err
	}
	if pos.Leaves > base.next { // of submissions that another process has completed
		stored, err := f.Store.Read(ctx, pos.Generation, base.next, MaxRecent)
		if err != nil && !errors.Is(err, ErrMoved) {
			return nil, err
		}
		for _, l := range stored {
			all = append(all, [][32]byte{l.Commitment})
		}
	}
	return append(all, sent...), nil
}

// continueFrom makes the tree one that continues the published leaves and that the account confirms. It
// returns true if the tree starts anew with the published leaves.
func (p *processed) continueFrom(base *published) (restarted bool) {
	p.base = base.root
	own, beyond := p.tree.Root(), p.tree.NextIndex()-base.next
	if p.leaves != nil && p.tree.NextIndex() >= base.next && beyond <= uint64(len(p.leaves)) && hasRoot(p.account.Tree, p.tree.NextIndex(), merkle.Bytes(&own)) {
		p.leaves = p.leaves[uint64(len(p.leaves))-beyond:]
		return false
	}
	p.tree, p.leaves, p.wrong = *base.tree, [][32]byte{}, map[trial]bool{}
	return true
}

func hasRoot(account *shieldpool.TreeAccount, leaves uint64, root [32]byte) bool {
	got, ok := account.RootAt(leaves)
	return ok && got == root
}

// extend appends leaves in the order that the account's root history shows. A submission whose first leaf the
// tree has already is tried last: it is most often the one that was appended, but two may have the same.
func (p *processed) extend(candidates [][][32]byte) {
	for trials, found := 0, true; found; {
		found = false
		for _, repeated := range []bool{false, true} {
			for _, leaves := range candidates {
				want, ok := p.account.Tree.RootAt(p.tree.NextIndex() + uint64(len(leaves)))
				if !ok || len(leaves) == 0 || slices.Contains(p.leaves, leaves[0]) != repeated || repeated && len(leaves) == 1 {
					continue
				}
				this := trial{want: want}
				copy(this.leaves[:], leaves)
				if p.wrong[this] {
					continue
				}
				if trials++; trials > maxTrials || len(p.leaves)+len(leaves) > MaxRecent {
					return
				}
				if p.append(leaves, want) {
					found = true
				} else {
					p.wrong[this] = true
				}
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
	for _, l := range leaves { // the roots of each leaf, one of which another process may tell
		_ = appendLeaf(&p.tree, IndexedCommitment{Commitment: l}) // it was appended above
		root := p.tree.Root()
		p.found = append(p.found, merkle.Bytes(&root))
	}
	p.wrong = map[trial]bool{}
	p.leaves = append(slices.Clip(p.leaves), leaves...) // answers have the old slice
	return true
}
