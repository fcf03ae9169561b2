package commitments_test

import (
	"context"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/internal/commitments"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// endpoint shows a tree account. It does not answer while there is none.
type endpoint struct {
	pool *shieldpool.Pool
	tree *shieldpool.TreeAccount
}

func (e *endpoint) account() *onchain.Account {
	return &onchain.Account{Owner: e.pool.Profile.ProgramID, Data: e.tree.Bytes()}
}

func (e *endpoint) Accounts(context.Context, []solana.PublicKey, onchain.Commitment, uint64) ([]*onchain.Account, uint64, error) {
	return []*onchain.Account{e.account()}, 1000, nil
}

func (e *endpoint) Owners(ctx context.Context, keys []solana.PublicKey, c onchain.Commitment, slot uint64) ([]*onchain.Account, uint64, error) {
	return e.Accounts(ctx, keys, c, slot)
}

// twoEndpoints returns a follower of a chain whose blocks the lying endpoint serves, and whose tree both show.
func twoEndpoints(t *testing.T, h *history) (f *commitments.Follower, liar, honest *endpoint) {
	t.Helper()
	liar, honest = &endpoint{pool: h.pool}, &endpoint{pool: h.pool}
	reader, err := chain.NewPool(chain.PoolOptions{
		Accounts: liar, Pool: h.pool, Now: h.now, MinInterval: time.Nanosecond,
		AllEndpoints: func(context.Context, solana.PublicKey) (all []chain.AccountAt) {
			for _, e := range []*endpoint{liar, honest} {
				if e.tree != nil {
					all = append(all, chain.AccountAt{Account: e.account(), Slot: 1000})
				}
			}
			return all
		},
	})
	must(t, err)
	f, err = commitments.New(commitments.Options{
		Store: newStore(t, h), Chain: h, Tree: reader, Pool: h.pool, Log: discard(), Now: h.now, Interval: time.Second,
		Finalized: h.finalizedSlot, Subscribed: func() bool { return false }, CheckpointEvery: checkpointEvery,
	})
	must(t, err)
	return f, liar, honest
}

// One endpoint serves blocks with leaves that nobody inserted, and a tree that fits them. The other is honest.
func TestALeafThatOneEndpointInventsIsNotServed(t *testing.T) {
	t.Parallel()
	inserted, invented := map[uint64][]uint64{1: {1}, 2: {2}, 3: {3}}, map[uint64][]uint64{1: {1}, 2: {9}}
	h := newHistory(t)
	h.fork(inserted)
	truth := copyOf(h.tree)
	h.fork(invented)
	lie := copyOf(h.tree)
	// rewritten returns the real tree with one other root in its history.
	rewritten := func(at uint64, root [32]byte) *shieldpool.TreeAccount {
		return truth.WithHistory(func(leaves uint64) [32]byte {
			if leaves == at {
				return root
			}
			root, _ := truth.RootAt(leaves)
			return root
		})
	}
	for name, shown := range map[string]*shieldpool.TreeAccount{
		"its tree has these leaves":                  lie,
		"the root history has their root":            rewritten(lie.NextIndex, lie.Root),
		"the root history has it for another number": rewritten(lie.NextIndex+1, lie.Root),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHistory(t)
			f, liar, honest := twoEndpoints(t, h)
			honest.tree, liar.tree = truth, shown
			h.fork(invented)
			wantTrue := func() {
				t.Helper()
				for i, got := range served(t, f) {
					if got != leaf(uint64(i/2+1), uint64(i%2)) {
						t.Errorf("leaf %d is served, which nobody inserted", i)
					}
				}
				if _, ok := f.Since(lie.Root); ok {
					t.Error("the root of leaves that nobody inserted is known")
				}
			}
			for range 20 {
				_ = f.Sync(t.Context(), 0) // it may say that the endpoints contradict each other
				wantTrue()
				h.advance(time.Second)
			}
			h.fork(inserted)
			liar.tree = truth
			h.advance(time.Hour) // of a rewind that was in vain
			must(t, f.Sync(t.Context(), 0))
			wantServed(t, f, 1, 2, 3)
		})
	}
}

// The lying endpoint waits until the other one does not answer.
func TestALeafThatOneEndpointInventsAloneHasToWait(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	f, liar, honest := twoEndpoints(t, h)
	h.fork(map[uint64][]uint64{1: {1}})
	liar.tree, honest.tree = h.tree, h.tree
	must(t, f.Sync(t.Context(), 0))
	wantServed(t, f, 1)
	for range 3 {
		h.fork(map[uint64][]uint64{1: {1}, 2: {9}})
		liar.tree, honest.tree = h.tree, nil
		for range 5 {
			h.advance(time.Second)
			_ = f.Sync(t.Context(), 0) // after a contradiction it reads again a little later
			wantServed(t, f, 1)
		}
		h.fork(map[uint64][]uint64{1: {1}, 2: {2}})
		honest.tree = h.tree
		h.advance(time.Second)
		_ = f.Sync(t.Context(), 0) // the two contradict each other
		wantServed(t, f, 1)
	}
	liar.tree = h.tree
	h.advance(time.Hour)
	must(t, f.Sync(t.Context(), 0))
	wantServed(t, f, 1, 2)
	h.fork(map[uint64][]uint64{1: {1}, 2: {2}, 3: {3}})
	liar.tree, honest.tree = h.tree, nil
	h.advance(11 * time.Second) // the other is away, and not just late
	must(t, f.Sync(t.Context(), 0))
	wantServed(t, f, 1, 2, 3)
}

// An endpoint serves wrong blocks, and a root history that shows nothing of the published leaves.
func TestPublishedLeavesStayWhileNothingContradictsThem(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		real map[uint64][]uint64 // the chain after two transactions
		want []uint64            // transactions
	}{
		"a third follows":     {map[uint64][]uint64{1: {1}, 2: {2}, 3: {3}}, []uint64{1, 2}},
		"a fork replaces one": {map[uint64][]uint64{1: {1}, 2: {4}, 3: {3}}, []uint64{1}},
		"a fork removes one":  {map[uint64][]uint64{1: {1}}, []uint64{1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHistory(t)
			f, liar, honest := twoEndpoints(t, h)
			h.fork(map[uint64][]uint64{1: {1}, 2: {2}})
			published := h.tree.NextIndex
			liar.tree, honest.tree = h.tree, h.tree
			must(t, f.Sync(t.Context(), 0))
			wantServed(t, f, 1, 2)

			h.fork(tt.real)
			honest.tree = h.tree
			liar.tree = h.tree.WithHistory(func(leaves uint64) [32]byte {
				root, _ := honest.tree.RootAt(leaves)
				if leaves == published && leaves < honest.tree.NextIndex {
					root = [32]byte{31: 1}
				}
				return root
			})
			h.fork(map[uint64][]uint64{1: {1}, 2: {2}, 3: {9}})
			h.advance(time.Second)
			if err := f.Sync(t.Context(), 0); err == nil {
				t.Error("wrong blocks are not noticed")
			}
			wantServed(t, f, tt.want...)
		})
	}
}
