package chain

import (
	"context"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
)

// ReadOnce lets the processes of a fleet read something once for all of them. They take turns for each
// name. In its turn, a process calls use with the value that a process before it read at slot. The
// read began at most age ago. If there is no value, or use returns false, the process calls
// read, and shares what that returns, unless it is nil. If there is no turn soon, it calls read.
type ReadOnce func(ctx context.Context, name string, use func(value []byte, slot uint64, age time.Duration) bool, read func(context.Context) (value []byte, slot uint64))

// maxSharedTree bounds a tree account that processes share, in bytes: with 8000 roots. A larger one
// would be copied through the database several times a second.
const maxSharedTree = 256 << 10

// recentTree returns the newest tree that AgreedTree may return without a read; nil when there is none.
func (p *PoolReader) recentTree(minSlot uint64, maxAge time.Duration) *onchain.Snapshot {
	s := p.lastAgreed()
	if p.allEndpoints == nil {
		s = p.cached()
	}
	if s == nil || !s.Checked || s.Doubtful || s.Slot < minSlot || maxAge <= 0 || p.now().Sub(s.At) > maxAge {
		return nil
	}
	return s
}

// readForFleet reads the tree for AgreedTree, unless another process has a recent one. Then it makes that
// one known, and the result has no time.
func (p *PoolReader) readForFleet(ctx context.Context, minSlot uint64, maxAge time.Duration) (r reading) {
	read := func(ctx context.Context) ([]byte, uint64) {
		if r = p.readAgreed(ctx); r.agreedErr != nil {
			return nil, 0
		}
		return p.sharedTree(r.agreed)
	}
	if p.readOnce == nil {
		read(ctx)
		return r
	}
	name := "tree " + p.pool.MerkleTree.String()
	if p.allEndpoints != nil {
		name = "agreed " + name
	}
	p.readOnce(ctx, name, func(value []byte, slot uint64, age time.Duration) bool {
		return slot >= minSlot && age <= maxAge && p.adoptTree(value, slot, age) && p.recentTree(minSlot, maxAge) != nil
	}, read)
	return r
}

// readAgreed reads the tree anew, and returns it as agreed.
func (p *PoolReader) readAgreed(ctx context.Context) reading {
	at := p.now()
	if s, err := p.treeOfOne(ctx); err != nil || p.allEndpoints == nil {
		return reading{at: at, agreed: s, agreedErr: err}
	}
	r, err := p.readAll(ctx)
	if err != nil {
		return reading{at: at, agreedErr: err}
	}
	return r
}

// treeOfOne reads the tree at one endpoint, as far as AgreedTree needs it: not at all if
// there are several endpoints, and a tree is known.
func (p *PoolReader) treeOfOne(ctx context.Context) (onchain.Snapshot, error) {
	if p.allEndpoints != nil && p.cached() != nil {
		return onchain.Snapshot{}, nil
	}
	return p.Tree(ctx, 0)
}

// sharedTree returns the account for other processes; nil for a tree that is not certain enough.
func (p *PoolReader) sharedTree(s onchain.Snapshot) (value []byte, slot uint64) {
	if !s.Checked || s.Doubtful || p.allEndpoints != nil && !s.Corroborated || p.pool.Profile.TreeLength() > maxSharedTree {
		return nil, 0
	}
	return s.Tree.Bytes(), s.Slot
}

// adoptTree makes a tree known that another process has read, with the agreement of two endpoints if
// there are several. It returns false for a tree that this process has to judge itself: one with
// fewer leaves than it knows, as after a fork, or with a slot that its endpoints do not confirm.
func (p *PoolReader) adoptTree(value []byte, slot uint64, age time.Duration) bool {
	p.updating.Lock()
	defer p.updating.Unlock()
	at := p.now().Add(-age)
	s, err := p.parse(&onchain.Account{Owner: p.pool.Profile.ProgramID, Data: value}, slot, at)
	if err != nil || !s.Checked || !p.corroborated(slot) {
		return false
	}
	known, agreed := p.cached(), p.lastAgreed()
	if agreed != nil && s.Tree.NextIndex < agreed.Tree.NextIndex {
		return false
	}
	switch {
	case known == nil || newer(s, *known):
		p.keep(s, value)
	case known.Tree.Root != s.Tree.Root && p.allEndpoints == nil:
		return false
	case known.Tree.Root == s.Tree.Root && at.After(known.At):
		p.confirmKnown(at)
	}
	if p.allEndpoints != nil {
		s.Corroborated, s.Behind = true, p.slotIsOld(slot, at)
		p.mu.Lock()
		p.agreed = &s
		p.mu.Unlock()
	}
	return true
}
