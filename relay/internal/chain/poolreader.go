package chain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gagliardetto/solana-go"
	"golang.org/x/sync/singleflight"

	"github.com/relaypool/relaypool/relay/batch"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// defaultMinInterval is half a slot. A landing waits for two reads before it is recorded, and
	// a client for one before it proves.
	defaultMinInterval = 100 * time.Millisecond
	// Clients are told to wait for retryChain or retryPool before they retry. retryPool is longer,
	// because an RPC endpoint recovers by itself, but a person has to initialise a pool.
	retryChain = 5 * time.Second
	retryPool  = time.Minute
	// slotMaxAge is how long a reading makes nodes with lower slots count as behind. The time is
	// limited, so that a node that once reported a wrong slot does not make all others count as
	// behind for ever.
	slotMaxAge = time.Minute
)

// AccountReader reads accounts, all at one slot that is not before minContextSlot; Owners without their
// data. *Endpoints and *rpc.Client implement it.
type AccountReader interface {
	Owners(ctx context.Context, keys []solana.PublicKey, commitment onchain.Commitment, minContextSlot uint64) ([]*onchain.Account, uint64, error)
	Accounts(ctx context.Context, keys []solana.PublicKey, commitment onchain.Commitment, minContextSlot uint64) ([]*onchain.Account, uint64, error)
}

// PoolOptions configure a PoolReader.
type PoolOptions struct {
	Accounts AccountReader
	Pool     *shieldpool.Pool
	Now      func() time.Time
	// Corroborated reports whether two endpoints confirm that the chain has reached a slot. An
	// answer of a lower slot counts as older only if they do. Nil means that they always do.
	Corroborated func(slot uint64) bool
	// SlotIsOld reports whether the chain may already have been far past the slot at the given
	// time. If so, the account's content at that slot may be outdated. Nil means never.
	SlotIsOld func(slot uint64, at time.Time) bool
	// History finds the transaction that created a nullifier's account, as
	// Endpoints.FindCreation does. Nil when it is not needed.
	History func(ctx context.Context, pool *shieldpool.Pool, nullifier [32]byte) (*onchain.Creation, error)
	// AllEndpoints reads an account at every endpoint; nil when there is only one.
	AllEndpoints func(ctx context.Context, key solana.PublicKey) []AccountAt
	// ReadOnce lets the processes of a fleet read the tree once for all; nil for a process alone.
	ReadOnce ReadOnce
	// MinInterval is the least time between two reads of the tree account; 0 means 100 ms.
	MinInterval time.Duration
	// Changed is called with every new state of the tree account: each newest one, and each agreed
	// one. The error is that of the state's self-check, or nil. Calls do not overlap. Nil for none.
	Changed func(onchain.Snapshot, error)
}

// PoolReader reads the accounts of one pool at the confirmed commitment, and keeps a copy of its
// tree account. Only one read for Tree runs at a time, and all waiting callers share it. It starts
// at least MinInterval after the start of the previous one. Safe for concurrent use.
//
// Errors are refusals. pool_not_initialised means that the reader has never found a tree account
// that the program owns, or that the account's layout does not fit the profile. chain_unavailable
// means that the account could not be read.
type PoolReader struct {
	accounts     AccountReader
	pool         *shieldpool.Pool
	now          func() time.Time
	corroborated func(uint64) bool
	slotIsOld    func(uint64, time.Time) bool
	interval     time.Duration
	changed      func(onchain.Snapshot, error)
	mints        map[string]bool
	history      func(context.Context, *shieldpool.Pool, [32]byte) (*onchain.Creation, error)
	// allEndpoints is nil when there is only one endpoint.
	allEndpoints func(context.Context, solana.PublicKey) []AccountAt

	readOnce ReadOnce // may be nil

	// together has the account reads of concurrent inspections.
	together *batch.Queue[[]solana.PublicKey, slotted[[]*onchain.Account]]

	flight  singleflight.Group
	started time.Time // when the last read started

	updating    sync.Mutex        // held while an answer is processed
	data        []byte            // the account's bytes; p.last is decoded from them
	confirmedAt time.Time         // when an endpoint most recently reported the known state
	shownByTwo  *onchain.Snapshot // the last tree that two endpoints showed, to any process
	alone       alone             // the endpoint that alone answers

	mu        sync.Mutex
	last      *onchain.Snapshot // the newest known tree
	agreed    *onchain.Snapshot // the last agreed tree, of any process
	readAllAt time.Time         // when all endpoints were last read together
	noticed   notice            // the last change that the known tree may lack
	processed reading           // the last one of the processed commitment
}

// NewPool makes a reader of one pool. It makes no call.
func NewPool(o PoolOptions) (*PoolReader, error) {
	switch {
	case o.Accounts == nil || o.Pool == nil || o.Now == nil:
		return nil, errors.New("pool reader needs an account reader, a pool and a clock")
	case o.MinInterval < 0:
		return nil, fmt.Errorf("pool reader's least interval is %s: expected a positive duration, or 0 for %s", o.MinInterval, defaultMinInterval)
	}
	p := &PoolReader{accounts: o.Accounts, pool: o.Pool, now: o.Now, corroborated: o.Corroborated, slotIsOld: o.SlotIsOld, interval: o.MinInterval, changed: o.Changed, history: o.History, allEndpoints: o.AllEndpoints, readOnce: o.ReadOnce, mints: map[string]bool{"": true}}
	p.together = &batch.Queue[[]solana.PublicKey, slotted[[]*onchain.Account]]{Run: p.readAccounts, Runners: 2, Limit: maxTogether, Stall: time.Second}
	if p.interval == 0 {
		p.interval = defaultMinInterval
	}
	if p.corroborated == nil {
		p.corroborated = func(uint64) bool { return true }
	}
	if p.slotIsOld == nil {
		p.slotIsOld = func(uint64, time.Time) bool { return false }
	}
	if p.changed == nil {
		p.changed = func(onchain.Snapshot, error) {}
	}
	for _, m := range o.Pool.Profile.Mints {
		poolOfMint, err := o.Pool.Profile.Pool(m)
		if err != nil {
			return nil, err
		}
		if poolOfMint.Address.Equals(o.Pool.Address) {
			p.mints[m.Address.String()] = true
		}
	}
	return p, nil
}

// FindCreation returns the transaction that created the nullifier's account; nil when no
// endpoint's history has it.
func (p *PoolReader) FindCreation(ctx context.Context, nullifier [32]byte) (*onchain.Creation, error) {
	if p.history == nil {
		return nil, nil //nolint:nilnil // no history is configured
	}
	return p.history(ctx, p.pool, nullifier)
}

// Tree returns a snapshot of the tree account, at most maxAge old at the time of the call, that has the
// change of the last NoticeChange. The snapshot is from the cache, or else from the next read that
// MinInterval permits. With maxAge 0 that read starts after the call. The snapshot is shared: do not
// change it.
func (p *PoolReader) Tree(ctx context.Context, maxAge time.Duration) (onchain.Snapshot, error) {
	since := p.now().Add(-maxAge)
	p.mu.Lock()
	s, last := p.last, p.noticed
	p.mu.Unlock()
	if s != nil && !s.At.Before(since) && last.has(s) {
		return *s, nil
	}
	if last.at.After(since) {
		since = last.at
	}
	for {
		// The read serves all waiting callers, so no single caller's context ends it.
		done := p.flight.DoChan("", func() (any, error) { return p.refresh(context.WithoutCancel(ctx)), nil })
		select {
		case <-ctx.Done():
			return onchain.Snapshot{}, unavailable(ctx.Err())
		case r := <-done:
			// A read that was under way before the call may be too old.
			if got, ok := r.Val.(reading); ok && !got.at.Before(since) {
				return got.snapshot, got.err
			}
		}
	}
}

// Tokens reads a mint and a token account at one slot. The caller has to check their
// contents: anybody can put anything into an account of their own.
func (p *PoolReader) Tokens(ctx context.Context, mint, account solana.PublicKey) (onchain.Tokens, error) {
	accounts, slot, err := p.accounts.Accounts(ctx, []solana.PublicKey{mint, account}, onchain.Confirmed, 0)
	if err != nil {
		return onchain.Tokens{}, unavailable(err)
	}
	return onchain.Tokens{Mint: accounts[0], Account: accounts[1], Slot: slot}, nil
}

// reading is the result of one read of the tree account. at is the time at which it started.
type reading struct {
	snapshot onchain.Snapshot
	at       time.Time
	err      error
	// The fields all and wrongSlot are set when all endpoints were asked, and have their trees. agreed is the tree
	// that they agree on, or that of the only one.
	all       []onchain.Snapshot
	wrongSlot []onchain.Snapshot // the trees of endpoints that reported an impossible slot
	agreed    onchain.Snapshot
	agreedErr error
}

func (p *PoolReader) cached() *onchain.Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// refresh reads the tree account when the interval allows it. Only one call runs at a time.
func (p *PoolReader) refresh(ctx context.Context) reading {
	p.pause(p.started)
	p.started = p.now()
	r := reading{at: p.started}
	accounts, slot, err := p.accounts.Accounts(ctx, []solana.PublicKey{p.pool.MerkleTree}, onchain.Confirmed, 0)
	if err != nil {
		r.err = unavailable(err)
		return r
	}
	var rejected bool
	if r.snapshot, rejected, r.err = p.update(accounts[0], slot, r.at); rejected {
		if all, err := p.readAll(ctx); err == nil && all.err == nil {
			r.snapshot = all.snapshot
		}
		return r
	}
	p.startReadAll(ctx)
	return r
}

// pause waits until MinInterval has passed since the last read.
func (p *PoolReader) pause(last time.Time) {
	if wait := p.interval - p.now().Sub(last); !last.IsZero() && wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		<-timer.C
	}
}

// update makes the account's state the newest one and returns it. With several endpoints, update
// does not accept an account with fewer leaves than the known state, because only one endpoint has
// reported it so far. It then returns the known state, and rejected is true.
func (p *PoolReader) update(a *onchain.Account, slot uint64, at time.Time) (s onchain.Snapshot, rejected bool, err error) {
	p.updating.Lock()
	defer p.updating.Unlock()
	last := p.cached()
	if last != nil && slot < last.Slot && at.Sub(p.confirmedAt) < slotMaxAge && p.corroborated(last.Slot) {
		// This node is behind the one that reported the known state.
		return p.confirmKnown(at), false, nil
	}
	s, err = p.parse(a, slot, at)
	switch {
	case err != nil:
		return onchain.Snapshot{}, false, err
	case p.allEndpoints != nil && s.Checked && p.hasFewerLeaves(s):
		return p.confirmKnown(at), true, nil
	default:
		return p.keep(s, a.Data), false, nil
	}
}

// confirmKnown stores and returns the known state, with at as the time of its newest read.
func (p *PoolReader) confirmKnown(at time.Time) onchain.Snapshot {
	s := *p.cached()
	s.At = at
	return p.store(s, p.data)
}

// keep makes the snapshot, which an endpoint has just reported, the newest one.
func (p *PoolReader) keep(s onchain.Snapshot, data []byte) onchain.Snapshot {
	p.confirmedAt = s.At
	changed := !bytes.Equal(data, p.data)
	s = p.store(s, data)
	if changed {
		var err error
		if !s.Checked {
			err = s.Tree.SelfCheck()
		}
		p.changed(s, err)
	}
	return s
}

func (p *PoolReader) store(s onchain.Snapshot, data []byte) onchain.Snapshot {
	s.Doubtful, s.Behind = !p.corroborated(s.Slot), p.slotIsOld(s.Slot, s.At)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last, p.data = &s, data
	return s
}

// unavailable returns a refusal that asks the client to retry later. The cause err is only for the
// log.
func unavailable(err error) error {
	return refusal.New(refusal.ChainUnavailable,
		"the relay cannot read the chain now, so nothing was decided: send the same request again later").
		Retry(retryChain).Because(err)
}
