package commitments_test

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/internal/commitments"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// fork is a chain: the transactions in each slot.
type fork map[uint64][]uint64

// endpoint shows a tree account at a slot. It does not answer while there is none.
type endpoint struct {
	pool *shieldpool.Pool
	tree *shieldpool.TreeAccount
	slot uint64
	lag  uint64 // in slots
}

func (e *endpoint) account() *onchain.Account {
	return &onchain.Account{Owner: e.pool.Profile.ProgramID, Data: e.tree.Bytes()}
}

func (e *endpoint) Accounts(context.Context, []solana.PublicKey, onchain.Commitment, uint64) ([]*onchain.Account, uint64, error) {
	return []*onchain.Account{e.account()}, e.slot, nil
}

func (e *endpoint) Owners(ctx context.Context, keys []solana.PublicKey, c onchain.Commitment, slot uint64) ([]*onchain.Account, uint64, error) {
	return e.Accounts(ctx, keys, c, slot)
}

// lying is a follower whose endpoints contradict each other. The first one, which serves the blocks, lies.
type lying struct {
	t *testing.T
	*history
	*commitments.Follower
	all []*endpoint
}

func newLying(t *testing.T, endpoints int) *lying {
	t.Helper()
	l := &lying{t: t, history: newHistory(t)}
	for range endpoints {
		l.all = append(l.all, &endpoint{pool: l.pool})
	}
	reader, err := chain.NewPool(chain.PoolOptions{
		Accounts: l.all[0], Pool: l.pool, Now: l.now, MinInterval: time.Nanosecond,
		AllEndpoints: func(context.Context, solana.PublicKey) (all []chain.AccountAt) {
			for i, e := range l.all {
				if e.tree != nil {
					all = append(all, chain.AccountAt{Account: e.account(), Slot: e.slot, Endpoint: i})
				}
			}
			return all
		},
	})
	must(t, err)
	l.Follower, err = commitments.New(commitments.Options{
		Store: newStore(t, l.history), Chain: l.history, Tree: reader, Pool: l.pool, Log: discard(), Now: l.now, Interval: time.Second,
		Finalized: l.finalizedSlot, Subscribed: func() bool { return false }, CheckpointEvery: checkpointEvery,
	})
	must(t, err)
	return l
}

// treeOf returns the tree of a chain.
func (l *lying) treeOf(f fork) *shieldpool.TreeAccount {
	l.t.Helper()
	h := newHistory(l.t)
	h.fork(f)
	return h.tree
}

// show sets what the endpoints show from now on, the first one first; nil for no answer. The blocks are those of the
// first one and, after a Distrust, of the last one.
func (l *lying) show(forks ...fork) {
	l.t.Helper()
	l.other = newHistory(l.t)
	for i, f := range forks {
		l.all[i].tree = nil
		if f == nil {
			continue
		}
		l.all[i].tree = l.treeOf(f)
		if i == 0 {
			l.fork(f)
		}
		l.other.fork(f)
	}
}

// pass runs a pass of the follower, a second, or two slots, after the one before.
func (l *lying) pass() error {
	l.t.Helper()
	l.history.advance(time.Second)
	for _, e := range l.all {
		e.slot = 100 + 2*uint64(l.elapsed.Load()/int64(time.Second)) - e.lag
	}
	return l.Sync(l.t.Context(), 0)
}

// wantList checks which transactions' leaves are served after a pass in each of so many seconds.
func (l *lying) wantList(what string, seconds int, want ...uint64) {
	l.t.Helper()
	for second := range seconds {
		err := l.pass()
		var got []uint64
		for i, c := range served(l.t, l.Follower) {
			n := binary.BigEndian.Uint64(c[24:])
			if n%2 != uint64(i%2) {
				l.t.Fatalf("%s: leaf %d is output %d of a transaction", what, i, n%2)
			}
			if i%2 == 0 {
				got = append(got, n/2)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			l.t.Fatalf("%s: in second %d, with the error %v, the served transactions are wrong (-want +got):\n%s", what, second+1, err, diff)
		}
	}
}

var (
	start  = fork{100: {1}, 101: {2}}
	grown  = fork{100: {1}, 101: {2}, 103: {3}, 104: {4}}
	lie    = fork{100: {1}, 101: {2}, 104: {9}}
	forked = fork{100: {1}}
)

// The tree that the lying endpoint shows is real but for one root of its history, which fits its blocks.
func TestALeafThatOneEndpointInventsIsNotServed(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]int{
		"the root of these leaves is in the root history":      0,
		"it is in the root history as that of a leaf more":     1,
		"it is in the root history as that of a leaf less":     -1,
		"it is in the root history as that of six leaves less": -6,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLying(t, 2)
			l.show(start, start)
			l.wantList("both are honest", 1, 1, 2)
			invented := l.treeOf(lie)
			l.show(lie, grown)
			l.all[0].tree = l.all[1].tree.WithHistory(func(leaves uint64) [32]byte {
				if int(leaves) == int(invented.NextIndex)+at {
					return invented.Root
				}
				root, _ := l.all[1].tree.RootAt(leaves)
				return root
			})
			want := []uint64{1, 2, 3, 4} // its blocks are wrong, and the other's are read
			if at == 0 {
				want = want[:2] // nothing shows that
			}
			l.wantList("one lies", 20, want...)
			if _, ok := l.Since(invented.Root); ok {
				t.Error("the root of leaves that nobody inserted is known")
			}
		})
	}
}

func TestOneEndpointServesWrongBlocks(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		blocks fork
		behind int // seconds until the other endpoint's are read
		spoil  func(*lying)
	}{
		"they have other leaves":              {lie, 0, nil},
		"its list of transactions is short":   {start, 11, nil},
		"its history is short, too":           {start, 11, func(l *lying) { l.claimed = 1 << 40 }},
		"its list of transactions never ends": {start, 1, func(l *lying) { l.endless = true }},
		"the chain has not reached its slot":  {fork{100: {1}, 101: {2}, 1 << 40: {9}}, 61, nil},
		"a leaf is not a field element": {lie, 1, func(l *lying) {
			data := l.blocks[2].Transactions[0].Instructions[3].Data
			for i := 1; i < len(data); i++ {
				data[i] = 0xff
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLying(t, 2)
			l.show(start, start)
			l.wantList("both are honest", 1, 1, 2)
			l.show(tt.blocks, grown)
			l.all[0].tree = l.all[1].tree
			if tt.spoil != nil {
				tt.spoil(l)
			}
			l.wantList("one has the wrong blocks", tt.behind, 1, 2)
			l.wantList("the other one is asked", 20, 1, 2, 3, 4)
		})
	}
}

// Two endpoints are on the fork that lives. The lying one continues the other one.
func TestAForkThatOneEndpointContinuesIsNotServed(t *testing.T) {
	t.Parallel()
	l := newLying(t, 3)
	l.show(start, start, start)
	l.wantList("all are honest", 1, 1, 2)
	l.show(lie, forked, forked)
	l.wantList("one continues a dead fork", 30, 1)
	l.show(lie, fork{100: {1}, 104: {5}}, fork{100: {1}, 104: {5}})
	l.wantList("the fork that lives grows", 30, 1, 5)
}

// Each time that the other endpoint fails to answer, the lying one shows leaves of its own.
func TestALeafThatOneEndpointInventsAloneHasToWait(t *testing.T) {
	t.Parallel()
	for name, between := range map[string][2]fork{
		"it is honest before":                     {start, start},
		"it does not answer before":               {nil, start},
		"it contradicts before":                   {fork{100: {7}}, start},
		"it lies before":                          {lie, start},
		"it lies before, and the other is behind": {lie, forked},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLying(t, 2)
			l.show(start, start)
			l.wantList("both are honest", 1, 1, 2)
			for range 3 {
				l.show(between[0], between[1])
				l.all[1].lag = 10
				for range 12 {
					_ = l.pass() // it may say that they contradict each other
				}
				l.show(lie, nil)
				l.wantList("the other does not answer", 9, 1, 2)
			}
		})
	}
}

func TestAfterTenSecondsOneEndpointIsBelieved(t *testing.T) {
	t.Parallel()
	l := newLying(t, 2)
	l.show(start, start)
	l.wantList("both answer", 1, 1, 2)
	l.show(lie, nil)
	l.wantList("one is away", 10, 1, 2)
	l.wantList("it stays away", 5, 1, 2, 9)
	l.show(lie, grown)
	l.wantList("it is back, and contradicts the other", 60, 1, 2)
	l.show(grown, grown)
	l.wantList("both agree", 1, 1, 2, 3, 4)
}

// An endpoint serves wrong blocks, and a root history that shows nothing of the published leaves.
func TestPublishedLeavesStayWhileNothingContradictsThem(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		now  fork
		want []uint64 // transactions
	}{
		"a third follows":     {fork{100: {1}, 101: {2}, 102: {3}}, []uint64{1, 2}},
		"a fork replaces one": {fork{100: {1}, 101: {4}, 102: {3}}, []uint64{1}},
		"a fork removes one":  {forked, []uint64{1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLying(t, 2)
			l.show(start, start)
			l.wantList("both are honest", 1, 1, 2)
			published := l.all[0].tree.NextIndex
			l.show(lie, tt.now)
			l.other = nil
			l.all[0].tree = l.all[1].tree.WithHistory(func(leaves uint64) [32]byte {
				root, _ := l.all[1].tree.RootAt(leaves)
				if leaves == published && leaves < l.all[1].tree.NextIndex {
					root = [32]byte{31: 1}
				}
				return root
			})
			l.wantList("the blocks are wrong", 1, tt.want...)
		})
	}
}
