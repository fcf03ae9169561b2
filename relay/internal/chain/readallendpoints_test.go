package chain

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
)

// accountSources are endpoints. The pool reader asks the first one, and at times all of them.
type accountSources []*accounts

func (s accountSources) accountAtAll(ctx context.Context, key solana.PublicKey) (all []AccountAt) {
	for i, a := range s {
		if accounts, slot, err := a.Accounts(ctx, []solana.PublicKey{key}, onchain.Confirmed, 0); err == nil {
			all = append(all, AccountAt{accounts[0], slot, i})
		}
	}
	return all
}

// newPoolAt returns a reader of a pool at n endpoints. setTree sets the slot and the number of
// leaves that one of them reports.
func newPoolAt(t *testing.T, n int) (p *PoolReader, all accountSources, setTree func(endpoint int, slot uint64, leaves byte)) {
	t.Helper()
	for range n {
		all = append(all, new(accounts))
	}
	p, err := NewPool(PoolOptions{Accounts: all[0], AllEndpoints: all.accountAtAll, Pool: testPool(t), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return p, all, func(i int, slot uint64, leaves byte) { all[i].set(slot, p.pool.MerkleTree, treeOf(t, p.pool, leaves)) }
}

func checkLeaves(t *testing.T, p *PoolReader, want uint64) {
	t.Helper()
	if s := mustTree(t, p, 0); s.Tree.NextIndex != want {
		t.Errorf("the tree has %d leaves, want %d", s.Tree.NextIndex, want)
	}
}

// advanceTime lets time pass while a caller asks for the tree twice a second.
func advanceTime(t *testing.T, p *PoolReader, d time.Duration) {
	t.Helper()
	for range d / (500 * time.Millisecond) {
		mustTree(t, p, 0)
		time.Sleep(500 * time.Millisecond)
	}
	synctest.Wait()
}

// TestOldTreeReportedAsCurrentIsNotUsed: the endpoint that is asked first returns an old tree with a
// current slot.
func TestOldTreeReportedAsCurrentIsNotUsed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, all, setTree := newPoolAt(t, 2)
		setTree(0, 100, 2)
		setTree(1, 99, 6)
		checkLeaves(t, p, 2) // only the first endpoint was asked
		advanceTime(t, p, time.Second)
		checkLeaves(t, p, 6)
		setTree(0, 101, 3)
		checkLeaves(t, p, 6)
		setTree(1, 100, 8)
		advanceTime(t, p, 2*readAllInterval)
		checkLeaves(t, p, 8)

		setTree(0, 110, 20) // the first endpoint is honest again
		checkLeaves(t, p, 20)
		advanceTime(t, p, 2*readAllInterval) // now the second endpoint reports an old tree
		checkLeaves(t, p, 20)
		setTree(1, 112, 22) // the first endpoint keeps reporting the known state
		advanceTime(t, p, 2*readAllInterval)
		checkLeaves(t, p, 22)

		all[1].fail(errors.New("down"))
		setTree(0, 120, 6)
		advanceTime(t, p, aloneAcceptedAfter-4*time.Second)
		checkLeaves(t, p, 22)
		advanceTime(t, p, 5*time.Second) // the only endpoint that answers is believed after a while
		checkLeaves(t, p, 6)
	})
}

func TestUnknownRootIsLookedUpAtAllEndpoints(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, all, setTree := newPoolAt(t, 3)
		root := func(leaves byte) [32]byte {
			tree, err := p.pool.Profile.ParseTree(treeOf(t, p.pool, leaves).Data)
			if err != nil {
				t.Fatal(err)
			}
			return tree.Root
		}
		check := func(r [32]byte, want uint64, hasRoot bool) {
			t.Helper()
			tick()
			s, err := p.TreeWith(t.Context(), r, time.Minute)
			if err != nil || s.Tree.NextIndex != want || (s.Tree.LeavesUntilEviction(r) >= 0) != hasRoot {
				t.Errorf("tree has %d leaves, error %v; want %d leaves and root present: %v", s.Tree.NextIndex, err, want, hasRoot)
			}
		}
		setTree(0, 100, 2)
		setTree(1, 99, 6)
		setTree(2, 98, 4)
		check(root(2), 2, true)
		check(root(5), 6, true)
		forked := p.pool.Profile.NewTree(keyA)
		if err := forked.Append([32]byte{31: 99}); err != nil {
			t.Fatal(err)
		}
		all[2].set(98, p.pool.MerkleTree, owned(p.pool, forked.Bytes()))
		check(forked.Root, 1, true)
		setTree(2, 0, 9) // an impossible slot, and a root that only this endpoint has
		check(root(9), 9, true)
		setTree(2, 98, 4)
		check([32]byte{7}, 4, false) // two show these, and one shows six
		before := all[1].count()
		check(root(6), 6, true)
		if all[1].count() != before {
			t.Error("all endpoints were asked for a known root")
		}
		for _, a := range all {
			a.fail(&onchain.Unavailable{Method: "getMultipleAccounts", Kind: onchain.KindTimeout})
		}
		_, err := p.TreeWith(t.Context(), [32]byte{7}, time.Minute)
		checkRefusal(t, err, refusal.ChainUnavailable)
		if len(all[2].asked) > 6 {
			t.Errorf("the third endpoint was asked %d times, want at most 6", len(all[2].asked))
		}
	})
}

func TestLeavesAreRemovedWhenTwoEndpointsAgree(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _, setTree := newPoolAt(t, 3)
		for i := range 3 {
			setTree(i, 100, 6)
		}
		checkLeaves(t, p, 6)
		advanceTime(t, p, 2*readAllInterval)
		setTree(0, 101, 4) // a fork
		checkLeaves(t, p, 6)
		setTree(1, 90, 4) // an endpoint that is behind proves nothing
		advanceTime(t, p, time.Second)
		checkLeaves(t, p, 6)
		setTree(1, 101, 4)
		setTree(2, 101, 4)
		checkLeaves(t, p, 4)
	})
}

// TestAccountAtAllAsksEveryEndpoint: two endpoints answer, one hangs, one is down and one reports an
// impossible slot.
func TestAccountAtAllAsksEveryEndpoint(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		names := []string{"good", "near", "hangs", "down", "ahead"}
		n := newNetwork(names...)
		for _, name := range names {
			n[name].setSlot(100)
		}
		e, _ := newEndpoints(t, n, endpointsNamed(names...), nil)
		startPolling(t, e, n, names...)
		for i, name := range names {
			slot := n[name].currentSlot()
			if name == "ahead" {
				slot += 1000
			}
			n[name].set("getMultipleAccounts", resultReply(`{"context":{"slot":`+strconv.FormatUint(slot, 10)+
				`},"value":[{"lamports":`+strconv.Itoa(i+1)+`,"owner":"`+solana.SystemProgramID.String()+`","data":["","base64"],"executable":false,"rentEpoch":0}]}`))
		}
		n["hangs"].set("getMultipleAccounts", reply{hang: true})
		n["down"].set("getMultipleAccounts", serverError)
		began := time.Now()
		got := map[uint64]uint64{}
		for _, answer := range e.AccountAtAll(t.Context(), keyA) {
			got[answer.Account.Lamports] = answer.Slot
		}
		if want := n["good"].currentSlot(); len(got) != 3 || got[1] != want || got[2] != want || got[5] != 0 {
			t.Errorf("slots by lamports are %v, want %d for 1 and 2, and 0 for 5", got, want)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the read took %s with a hanging endpoint, want at most 2 s", took)
		}
	})
}

// TestAccountAtAllAsksEndpointsWithOpenBreakers: failed sends have opened the breaker of the only endpoint
// that is up to date. The other endpoint would report a new root as stale.
func TestAccountAtAllAsksEndpointsWithOpenBreakers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork("current", "behind")
		n["current"].setSlot(112)
		n["behind"].setSlot(100)
		e, _ := newEndpoints(t, n, endpointsNamed("current", "behind"), nil)
		for i, name := range []string{"current", "behind"} {
			n[name].set("getMultipleAccounts", resultReply(`{"context":{"slot":`+strconv.FormatUint(n[name].currentSlot(), 10)+
				`},"value":[{"lamports":`+strconv.Itoa(i+1)+`,"owner":"`+solana.SystemProgramID.String()+`","data":["","base64"],"executable":false,"rentEpoch":0}]}`))
		}
		openBreaker(e.all[0])
		var got []uint64
		for _, answer := range e.AccountAtAll(t.Context(), keyA) {
			got = append(got, answer.Account.Lamports)
		}
		slices.Sort(got)
		if diff := cmp.Diff([]uint64{1, 2}, got); diff != "" {
			t.Errorf("asked endpoints differ (-want +got):\n%s", diff)
		}
	})
}

func TestNoteIsSpentWhenAllEndpointsAgree(t *testing.T) {
	t.Parallel()
	pool := testPool(t)
	n := [32]byte{31: 5}
	key, _, err := pool.Nullifier(n)
	if err != nil {
		t.Fatal(err)
	}
	spent, lamport := owned(pool, nil), &onchain.Account{Owner: solana.SystemProgramID, Lamports: 1}
	tests := map[string]struct {
		first, second *onchain.Account
		down          bool // the second endpoint
		want          bool
		code          refusal.Code
	}{
		"spent at both": {spent, spent, false, true, ""},
		"spent at one":  {spent, nil, false, false, ""},
		"spent at one, a system account with a lamport at the other": {spent, lamport, false, false, ""},
		"spent at one, the other is down":                            {spent, nil, true, false, refusal.ChainUnavailable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p, all, _ := newPoolAt(t, 2)
				all[0].set(10, key, test.first)
				all[1].set(10, key, test.second)
				if test.down {
					all[1].fail(errors.New("down"))
				}
				got, err := p.Spent(t.Context(), n)
				if got != test.want {
					t.Errorf("spent is %v, error %v, want %v", got, err, test.want)
				}
				if r, _ := refusal.As(err); (test.code == "") != (err == nil) || r != nil && r.Code != test.code {
					t.Errorf("error is %v, want refusal %q", err, test.code)
				}
			})
		})
	}
}
