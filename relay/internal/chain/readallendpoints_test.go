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

// several are endpoints: the first is asked, until all are.
type several []*accounts

func (s several) everywhere(ctx context.Context, key solana.PublicKey) (all []AccountAt) {
	for _, a := range s {
		if accounts, slot, err := a.Accounts(ctx, []solana.PublicKey{key}, onchain.Confirmed, 0); err == nil {
			all = append(all, AccountAt{accounts[0], slot})
		}
	}
	return all
}

// watched is a pool read at n endpoints; tell sets the number of leaves that one reports, and
// the slot.
func watched(t *testing.T, n int) (p *PoolReader, all several, tell func(endpoint int, slot uint64, leaves byte)) {
	t.Helper()
	for range n {
		all = append(all, new(accounts))
	}
	p, err := NewPool(PoolOptions{Accounts: all[0], AllEndpoints: all.everywhere, Pool: testPool(t), Now: time.Now})
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

// pass lets time pass while a caller asks for the tree twice a second.
func pass(t *testing.T, p *PoolReader, d time.Duration) {
	t.Helper()
	for range d / (500 * time.Millisecond) {
		mustTree(t, p, 0)
		time.Sleep(500 * time.Millisecond)
	}
	synctest.Wait()
}

// TestThePastAsNowIsNotTheNewestTree: the endpoint that is asked first returns an old state and
// claims that it is the newest one.
func TestThePastAsNowIsNotTheNewestTree(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, all, tell := watched(t, 2)
		tell(0, 100, 2)
		tell(1, 99, 6)
		checkLeaves(t, p, 2) // only the first endpoint's report is known
		pass(t, p, time.Second)
		checkLeaves(t, p, 6)
		tell(0, 101, 3)
		checkLeaves(t, p, 6)
		tell(1, 100, 8)
		pass(t, p, 2*readAllInterval)
		checkLeaves(t, p, 8)

		tell(0, 110, 20) // the first one is honest again
		checkLeaves(t, p, 20)
		pass(t, p, 2*readAllInterval) // and now the second one lies
		checkLeaves(t, p, 20)
		tell(1, 112, 22) // the first endpoint keeps reporting the known state
		pass(t, p, 2*readAllInterval)
		checkLeaves(t, p, 22)

		all[1].fail(errors.New("down"))
		tell(0, 120, 6)
		pass(t, p, shrinkAcceptedAfter-4*time.Second)
		checkLeaves(t, p, 22)
		pass(t, p, 5*time.Second) // the only one that answers is believed in the end
		checkLeaves(t, p, 6)
	})
}

func TestARootIsSoughtEverywhere(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, all, tell := watched(t, 3)
		root := func(leaves byte) [32]byte {
			tree, err := p.pool.Profile.ParseTree(treeOf(t, p.pool, leaves).Data)
			if err != nil {
				t.Fatal(err)
			}
			return tree.Root
		}
		with := func(r [32]byte, want uint64, has bool) {
			t.Helper()
			tick()
			s, err := p.TreeWith(t.Context(), r, time.Minute)
			if err != nil || s.Tree.NextIndex != want || (s.Tree.LeavesUntilEviction(r) >= 0) != has {
				t.Errorf("the tree has %d leaves, error %v, want %d; and has the root: %v", s.Tree.NextIndex, err, want, has)
			}
		}
		tell(0, 100, 2)
		tell(1, 99, 6)
		tell(2, 98, 4)
		with(root(2), 2, true)
		with(root(5), 6, true)
		forked := p.pool.Profile.NewTree(keyA)
		if err := forked.Append([32]byte{31: 99}); err != nil {
			t.Fatal(err)
		}
		all[2].set(98, p.pool.MerkleTree, owned(p.pool, forked.Bytes()))
		with(forked.Root, 1, true)
		tell(2, 0, 9) // a slot that cannot be, and a root that only this endpoint has seen
		with(root(9), 9, true)
		tell(2, 98, 4)
		with([32]byte{7}, 6, false)
		before := all[1].count()
		with(root(6), 6, true)
		if all[1].count() != before {
			t.Error("all are asked for a root that is known")
		}
		for _, a := range all {
			a.fail(&onchain.Unavailable{Method: "getMultipleAccounts", Kind: onchain.KindTimeout})
		}
		_, err := p.TreeWith(t.Context(), [32]byte{7}, time.Minute)
		checkRefusal(t, err, refusal.ChainUnavailable)
		if len(all[2].asked) > 6 {
			t.Errorf("the third endpoint was asked %d times", len(all[2].asked))
		}
	})
}

func TestLeavesAreRemovedWhenTwoEndpointsAgree(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _, tell := watched(t, 3)
		for i := range 3 {
			tell(i, 100, 6)
		}
		checkLeaves(t, p, 6)
		pass(t, p, 2*readAllInterval)
		tell(0, 101, 4) // a fork
		checkLeaves(t, p, 6)
		tell(1, 90, 4) // an endpoint that is behind proves nothing
		pass(t, p, time.Second)
		checkLeaves(t, p, 6)
		tell(1, 101, 4)
		tell(2, 101, 4)
		checkLeaves(t, p, 4)
	})
}

// TestEverywhereAsksAll has one endpoint that answers, one that hangs, one
// that is down and one whose slot the chain cannot have reached.
func TestEverywhereAsksAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		names := []string{"good", "near", "hangs", "down", "ahead"}
		n := newNetwork(names...)
		for _, name := range names {
			n[name].at(100)
		}
		e, _ := newEndpoints(t, n, of(names...), nil)
		known(t, e, n, names...)
		for i, name := range names {
			slot := n[name].standing()
			if name == "ahead" {
				slot += 1000
			}
			n[name].set("getMultipleAccounts", says(`{"context":{"slot":`+strconv.FormatUint(slot, 10)+
				`},"value":[{"lamports":`+strconv.Itoa(i+1)+`,"owner":"`+solana.SystemProgramID.String()+`","data":["","base64"],"executable":false,"rentEpoch":0}]}`))
		}
		n["hangs"].set("getMultipleAccounts", reply{hang: true})
		n["down"].set("getMultipleAccounts", sick)
		began := time.Now()
		got := map[uint64]uint64{}
		for _, told := range e.AccountAtAll(t.Context(), keyA) {
			got[told.Account.Lamports] = told.Slot
		}
		if want := n["good"].standing(); len(got) != 3 || got[1] != want || got[2] != want || got[5] != 0 {
			t.Errorf("slots by lamports are %v, want %d for 1 and 2, and 0 for 5", got, want)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %s with one that hangs", took)
		}
	})
}

// TestAccountAtAllOmitsSubmitEndpoints: failed sends have opened the breaker of the
// only endpoint that is up to date. By the other endpoint, which is behind, a root that a
// client has just been given would be stale.
func TestAccountAtAllOmitsSubmitEndpoints(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork("current", "behind")
		n["current"].at(112)
		n["behind"].at(100)
		e, _ := newEndpoints(t, n, of("current", "behind"), nil)
		for i, name := range []string{"current", "behind"} {
			n[name].set("getMultipleAccounts", says(`{"context":{"slot":`+strconv.FormatUint(n[name].standing(), 10)+
				`},"value":[{"lamports":`+strconv.Itoa(i+1)+`,"owner":"`+solana.SystemProgramID.String()+`","data":["","base64"],"executable":false,"rentEpoch":0}]}`))
		}
		open(e.all[0])
		var got []uint64
		for _, told := range e.AccountAtAll(t.Context(), keyA) {
			got = append(got, told.Account.Lamports)
		}
		slices.Sort(got)
		if diff := cmp.Diff([]uint64{1, 2}, got); diff != "" {
			t.Errorf("who is asked differs (-want +got):\n%s", diff)
		}
	})
}

func TestANoteIsSpentWhenAllEndpointsAgree(t *testing.T) {
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
		down          bool // the second one
		want          bool
		code          refusal.Code
	}{
		"both have it":                     {spent, spent, false, true, ""},
		"one has it":                       {spent, nil, false, false, ""},
		"one has it, and one a lamport":    {spent, lamport, false, false, ""},
		"one has it, and one says nothing": {spent, nil, true, false, refusal.ChainUnavailable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p, all, _ := watched(t, 2)
				all[0].set(10, key, test.first)
				all[1].set(10, key, test.second)
				if test.down {
					all[1].fail(errors.New("down"))
				}
				got, err := p.Spent(t.Context(), n)
				if got != test.want {
					t.Errorf("it is spent: %v, error %v, want %v", got, err, test.want)
				}
				if r, _ := refusal.As(err); (test.code == "") != (err == nil) || r != nil && r.Code != test.code {
					t.Errorf("error is %v, want refusal %q", err, test.code)
				}
			})
		})
	}
}
