package chain

import (
	"context"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
)

// Root returns the root of the agreed tree, for clients to prove against; see AgreedTree. If the
// endpoints do not agree in time, Root returns the last agreed root or, without a recent one, the
// root that one endpoint shows. mint is a base58 address, or empty for the pool's own mint. If the
// mint is not one of this pool, Root fails with unknown_mint.
func (p *PoolReader) Root(ctx context.Context, mint string) (onchain.Root, error) {
	if !p.mints[mint] {
		return onchain.Root{}, refusal.New(refusal.UnknownMint, "mint is not one of this pool's: expected an address that GET / lists under pool.mints, or none; received %d characters", len(mint))
	}
	s, err := p.treeSoon(ctx)
	if err != nil {
		return onchain.Root{}, err
	}
	s = p.agreedTreeOr(ctx, s)
	return onchain.Root{Root: s.Tree.Root, Tree: p.pool.MerkleTree, NextIndex: s.Tree.NextIndex, Slot: s.Slot}, nil
}

const (
	// newTreeTimeout bounds a client's wait for a newer tree than the known one, if that one is at most
	// knownTreeMaxAge old: two slots. It also bounds the wait after a NoticeChange, when the next read may
	// have to wait longer for MinInterval: an older root sooner is worth as much.
	newTreeTimeout  = 50 * time.Millisecond
	knownTreeMaxAge = 400 * time.Millisecond
)

// treeSoon returns a tree that is as new as can be had soon.
func (p *PoolReader) treeSoon(ctx context.Context) (onchain.Snapshot, error) {
	soon, cancel := context.WithTimeout(ctx, newTreeTimeout)
	defer cancel()
	s, err := p.Tree(soon, p.interval)
	if err == nil || soon.Err() == nil {
		return s, err
	}
	if known := p.cached(); known != nil && p.now().Sub(known.At) <= knownTreeMaxAge {
		return *known, nil
	}
	return p.Tree(ctx, p.interval)
}

// agreedRootTimeout bounds a client's wait for the answers of all endpoints.
const agreedRootTimeout = 500 * time.Millisecond

// agreedTreeOr returns the agreed tree. If there is no agreed tree, or the endpoints are too slow,
// it may return s, the snapshot of a single endpoint.
func (p *PoolReader) agreedTreeOr(ctx context.Context, s onchain.Snapshot) onchain.Snapshot {
	if p.allEndpoints == nil || !s.Checked {
		return s
	}
	last := p.lastAgreed()
	if last != nil && sameLeaves(*last, s) {
		return s
	}
	ctx, cancel := context.WithTimeout(ctx, agreedRootTimeout)
	defer cancel()
	if agreed, err := p.AgreedTree(ctx, s.Slot, knownTreeMaxAge); err == nil {
		return agreed
	}
	if last != nil && p.now().Sub(last.At) < slotMaxAge {
		return *last
	}
	return s
}
