package chain

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
)

// maxSharedTree bounds a tree account that processes share, in bytes: with 8000 roots. A larger one
// would be copied through the database several times a second.
const maxSharedTree = 256 << 10

// readForFleet reads the tree for AgreedTree. If another process has a tree that is good enough,
// readForFleet stores it for recentTree, and returns a zero reading.
func (p *PoolReader) readForFleet(ctx context.Context, minSlot uint64, maxAge time.Duration) (r reading) {
	read := func(ctx context.Context) []byte {
		r = p.readAgreed(ctx)
		return p.treeToShare(&r)
	}
	if p.readOnce == nil || maxAge <= 0 {
		read(ctx)
		return r
	}
	name := "tree " + p.pool.MerkleTree.String()
	if p.allEndpoints != nil {
		name = "agreed " + name
	}
	p.readOnce(ctx, name, func(value []byte, age time.Duration) bool {
		return p.useSharedTree(value, age) && p.recentTree(minSlot, maxAge) != nil
	}, read)
	return r
}

// treeToShare returns the account for other processes, with its slot; nil for a tree that is not certain
// enough, or that was not agreed on in this read.
func (p *PoolReader) treeToShare(r *reading) []byte {
	s := &r.agreed
	if r.agreedErr != nil || s.At.Before(r.at) || !s.Checked || s.Doubtful || p.allEndpoints != nil && !s.Corroborated ||
		p.knowsMoreLeaves(s) || p.pool.Profile.TreeLength() > maxSharedTree {
		return nil
	}
	return binary.LittleEndian.AppendUint64(s.Tree.Bytes(), s.Slot)
}

// useSharedTree makes a tree known that another process has read, with the agreement of two endpoints if
// there are several. It returns false for a tree that this process has to judge itself: one with
// fewer leaves than the last agreed one, as after a fork, or with a slot that its endpoints do not confirm.
func (p *PoolReader) useSharedTree(value []byte, age time.Duration) bool {
	n := len(value) - 8
	if n < 0 {
		return false
	}
	p.updating.Lock()
	defer p.updating.Unlock()
	data, slot, at := value[:n], binary.LittleEndian.Uint64(value[n:]), p.now().Add(-age)
	s, err := p.parse(&onchain.Account{Owner: p.pool.Profile.ProgramID, Data: data}, slot, at)
	if err != nil || !s.Checked || !p.corroborated(slot) {
		return false
	}
	if at.After(p.alone.since) {
		p.alone = alone{} // two endpoints answered that process
	}
	known, agreed := p.cached(), p.lastAgreed()
	if agreed != nil && s.Tree.NextIndex < agreed.Tree.NextIndex {
		return false
	}
	switch {
	case known == nil || newer(s, *known):
		p.keep(s, data)
	case sameLeaves(*known, s) && at.After(known.At):
		p.confirmKnown(at)
	}
	s.Corroborated, s.Behind = p.allEndpoints != nil, p.slotIsOld(slot, at)
	if s.Corroborated && (p.shownByTwo == nil || at.After(p.shownByTwo.At)) {
		p.shownByTwo = &s
	}
	if s.Corroborated && (agreed == nil || at.After(agreed.At)) {
		p.setAgreed(&s)
	}
	return true
}
