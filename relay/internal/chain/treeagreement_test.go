package chain

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/merkle"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// invented returns a tree with that many real leaves, and with leaves that nobody inserted.
func invented(t *testing.T, pool *shieldpool.Pool, honest byte, inventedLeaves ...byte) *onchain.Account {
	t.Helper()
	tree, err := pool.Profile.ParseTree(treeOf(t, pool, honest).Data)
	if err != nil {
		t.Fatal(err)
	}
	for _, leaf := range inventedLeaves {
		if err := tree.Append([32]byte{30: 1, 31: leaf}); err != nil {
			t.Fatal(err)
		}
	}
	return owned(pool, tree.Bytes())
}

func TestAgreedTreeNeedsTwoEndpoints(t *testing.T) {
	t.Parallel()
	pool := testPool(t)
	at := time.Unix(2000, 0)
	snapshot := func(slot uint64, a *onchain.Account) onchain.Snapshot {
		tree, err := pool.Profile.ParseTree(a.Data)
		if err != nil {
			t.Fatal(err)
		}
		return onchain.Snapshot{Tree: tree, Slot: slot, At: at.Add(-time.Second), Checked: true}
	}
	honest := func(slot uint64, leaves byte) onchain.Snapshot { return snapshot(slot, treeOf(t, pool, leaves)) }
	six := honest(99, 6)
	six.Corroborated = true
	ahead := honest(100+maxTreeLag+1, 9)
	ahead.Doubtful = true
	old := six
	old.At = at.Add(-slotMaxAge)
	tests := map[string]struct {
		all  []onchain.Snapshot
		last *onchain.Snapshot
		want any // the number of leaves; nil for no agreement
	}{
		"both have the same tree":                                 {[]onchain.Snapshot{honest(100, 8), honest(100, 8)}, &six, uint64(8)},
		"one is a leaf ahead":                                     {[]onchain.Snapshot{honest(101, 9), honest(100, 8)}, &six, uint64(8)},
		"one invents leaves after the real ones":                  {[]onchain.Snapshot{snapshot(100, invented(t, pool, 8, 1, 2)), honest(100, 8)}, &six, uint64(8)},
		"one invents leaves after the agreed ones":                {[]onchain.Snapshot{snapshot(100, invented(t, pool, 6, 1, 2, 3)), honest(100, 8)}, &six, uint64(6)},
		"one invents a whole tree":                                {[]onchain.Snapshot{snapshot(100, invented(t, pool, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)), honest(100, 8)}, &six, uint64(8)},
		"one invents a whole tree, and nothing was agreed":        {[]onchain.Snapshot{snapshot(100, invented(t, pool, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)), honest(100, 8)}, nil, nil},
		"one of three invents a tree":                             {[]onchain.Snapshot{snapshot(100, invented(t, pool, 6, 1, 2, 3)), honest(100, 8), honest(100, 9)}, &six, uint64(8)},
		"one returns an old tree as current":                      {[]onchain.Snapshot{honest(100, 4), honest(100, 8)}, &six, uint64(8)},
		"one appends leaves of the empty value":                   {[]onchain.Snapshot{snapshot(100, padded(t, pool, 8, 12)), honest(100, 8)}, &six, uint64(8)},
		"one is far behind":                                       {[]onchain.Snapshot{honest(100, 7), honest(100+maxTreeLag+1, 9)}, &six, uint64(9)},
		"one claims to be far ahead":                              {[]onchain.Snapshot{honest(100, 7), ahead}, &six, uint64(7)},
		"only a tree with a doubtful slot continues the last":     {[]onchain.Snapshot{honest(100, 4), ahead}, &six, nil},
		"a tree with a doubtful slot counts after a minute":       {[]onchain.Snapshot{honest(100, 4), ahead}, &old, uint64(9)},
		"a fork removed leaves at both":                           {[]onchain.Snapshot{honest(101, 4), honest(101, 5)}, &six, uint64(4)},
		"a fork removed leaves at one":                            {[]onchain.Snapshot{honest(101, 4), honest(100, 6)}, &six, uint64(6)},
		"only one answers and continues the agreed tree":          {[]onchain.Snapshot{honest(100, 9)}, &six, uint64(9)},
		"only one answers and does not continue it":               {[]onchain.Snapshot{honest(100, 4)}, &six, nil},
		"only one answers and does not continue it, for a minute": {[]onchain.Snapshot{honest(100, 4)}, &old, uint64(4)},
		"only one answers, and nothing was agreed":                {[]onchain.Snapshot{honest(100, 4)}, nil, uint64(4)},
		"none answers": {nil, &six, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, ok := agreedTree(test.all, test.last, at)
			var got any
			if ok {
				got = s.Tree.NextIndex
			}
			if got != test.want {
				t.Errorf("the agreed tree has %v leaves, want %v", got, test.want)
			}
		})
	}
}

// treeAt returns an endpoint's tree with that many real leaves.
func treeAt(t *testing.T, pool *shieldpool.Pool, slot uint64, leaves byte) onchain.Snapshot {
	t.Helper()
	tree, err := pool.Profile.ParseTree(treeOf(t, pool, leaves).Data)
	if err != nil {
		t.Fatal(err)
	}
	return onchain.Snapshot{Tree: tree, Slot: slot, Checked: true}
}

func TestATreeThatTwoEndpointsShowIsCorroborated(t *testing.T) {
	t.Parallel()
	pool := testPool(t)
	snapshot := func(leaves byte) onchain.Snapshot { return treeAt(t, pool, 100, leaves) }
	last := snapshot(6)
	last.Corroborated = true
	for name, test := range map[string]struct {
		all  []onchain.Snapshot
		want bool
	}{
		"both show the same tree":                     {[]onchain.Snapshot{snapshot(8), snapshot(8)}, true},
		"one has a leaf more":                         {[]onchain.Snapshot{snapshot(9), snapshot(8)}, true},
		"only one continues the last tree":            {[]onchain.Snapshot{snapshot(9)}, false},
		"only one continues, and the other is behind": {[]onchain.Snapshot{snapshot(9), snapshot(4)}, false},
	} {
		s, ok := agreedTree(test.all, &last, time.Unix(2000, 0))
		if !ok || s.Corroborated != test.want {
			t.Errorf("%s: got agreed %t, corroborated %t; want corroborated %t", name, ok, s.Corroborated, test.want)
		}
	}
}

// padded returns a tree to which leaves of the empty value were appended, so that it has the root of the real leaves.
func padded(t *testing.T, pool *shieldpool.Pool, honest byte, emptyLeaves int) *onchain.Account {
	t.Helper()
	tree, err := pool.Profile.ParseTree(treeOf(t, pool, honest).Data)
	if err != nil {
		t.Fatal(err)
	}
	empty := merkle.Zero(0)
	for range emptyLeaves {
		if err := tree.Append(merkle.Bytes(&empty)); err != nil {
			t.Fatal(err)
		}
	}
	return owned(pool, tree.Bytes())
}

// Of an older root, too, one endpoint's word is not enough: the self-check shows nothing of the root history.
func TestAnAgreedTreeHasTheRootsThatTwoEndpointsShow(t *testing.T) {
	t.Parallel()
	pool := testPool(t)
	snapshot := func(slot uint64, leaves byte) onchain.Snapshot { return treeAt(t, pool, slot, leaves) }
	lie := snapshot(101, 8) // its slot is later than the others', which may be honest
	lie.Tree = lie.Tree.WithHistory(func(leaves uint64) [32]byte {
		switch root, _ := lie.Tree.RootAt(leaves); leaves {
		case 4:
			return [32]byte{31: 99} // of leaves that it makes up
		case 5:
			root, _ = lie.Tree.RootAt(3) // a real root, of fewer leaves
			return root
		default:
			return root
		}
	})
	if lie.Tree.SelfCheck() != nil {
		t.Fatal("the tree fails its self-check")
	}
	many := byte(pool.Profile.RootHistory) + 20
	for name, tt := range map[string]struct {
		all     []onchain.Snapshot
		leaves  uint64
		unknown []uint64 // the numbers of leaves up to that one whose root is not known
	}{
		"both show the same":                        {[]onchain.Snapshot{snapshot(100, 8), snapshot(101, 8)}, 8, nil},
		"the newest tree is of one that invents":    {[]onchain.Snapshot{lie, snapshot(100, 8)}, 8, []uint64{4, 5}},
		"the other is of one that invents":          {[]onchain.Snapshot{snapshot(102, 8), lie}, 8, []uint64{4, 5}},
		"two others have the roots":                 {[]onchain.Snapshot{lie, snapshot(100, 8), snapshot(100, 9)}, 8, nil},
		"one of the two others has only some":       {[]onchain.Snapshot{lie, snapshot(100, 8), snapshot(100, 4)}, 8, []uint64{5}},
		"the newer tree no longer has oldest roots": {[]onchain.Snapshot{snapshot(101, many), snapshot(100, many-3)}, uint64(many) - 3, []uint64{18, 19, 20}},
	} {
		s, ok := agreedTree(tt.all, nil, time.Unix(2000, 0))
		if !ok || s.Tree.NextIndex != tt.leaves || s.Tree.SelfCheck() != nil {
			t.Errorf("%s: the agreed tree is %+v", name, s)
			continue
		}
		var unknown []uint64
		for leaves := range tt.leaves + 1 {
			root, ok := s.Tree.RootAt(leaves)
			switch {
			case ok && root != treeRoot(t, pool, byte(leaves)):
				t.Errorf("%s: the root of %d leaves is a false one", name, leaves)
			case !ok && leaves+uint64(len(s.Tree.History)) > tt.leaves:
				unknown = append(unknown, leaves)
			}
		}
		if diff := cmp.Diff(tt.unknown, unknown); diff != "" {
			t.Errorf("%s: the numbers of leaves whose root is not known (-want +got):\n%s", name, diff)
		}
	}
}

// While the other one fails to answer, an endpoint's leaves may be made up. Once others answer, they are forgotten.
func TestWhatOneEndpointShowsAloneIsProvisional(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, all, setTree := newPoolAt(t, 3)
		read := func() onchain.Snapshot {
			t.Helper()
			time.Sleep(time.Second)
			s, err := p.AgreedTree(t.Context(), 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		check := func(what string, leaves uint64, corroborated, provisional bool) {
			t.Helper()
			if s := read(); s.Tree.NextIndex != leaves || s.Corroborated != corroborated || s.Provisional != provisional {
				t.Errorf("%s: the agreed tree has %d leaves, corroborated %t, provisional %t; want %d, %t, %t",
					what, s.Tree.NextIndex, s.Corroborated, s.Provisional, leaves, corroborated, provisional)
			}
		}
		invent := func(leaves ...byte) {
			all[0].set(100, p.pool.MerkleTree, invented(t, p.pool, 6, leaves...))
		}
		down := func(endpoints ...int) {
			for _, i := range endpoints {
				all[i].fail(errors.New("down"))
			}
		}
		down(1, 2)
		setTree(0, 100, 5)
		check("one answers since the start", 5, false, true)
		setTree(1, 100, 6)
		setTree(0, 100, 6)
		check("two answer", 6, true, false)
		for range 2 { // the second time, its leaves are again new
			down(1, 2)
			invent(1, 2)
			check("one invents, alone", 8, false, true)
			invent(1, 2, 3)
			check("it goes on", 9, false, true)
			setTree(1, 100, 7)
			check("another contradicts it", 6, true, false)
		}
		down(1, 2)
		check("it is alone again", 9, false, true)
		setTree(1, 100, 7)
		setTree(2, 100, 7)
		check("two others answer", 7, true, false)
		down(1, 2)
		setTree(0, 100, 9)
		time.Sleep(aloneAcceptedAfter)
		check("the others are away", 9, false, false)
		setTree(0, 100, 10)
		check("they stay away", 10, false, false)
		setTree(1, 100, 8) // behind, and of the same chain
		check("one of them is back, and behind", 8, true, false)
	})
}

// TestInventedRootIsNotServed: the endpoint that is asked first appends invented leaves to the
// real tree. The tree's self-check cannot find them.
func TestInventedRootIsNotServed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, all, setTree := newPoolAt(t, 2)
		checkAgreed := func(want uint64) {
			t.Helper()
			time.Sleep(time.Second)
			root, err := p.Root(t.Context(), "")
			if err != nil || root.NextIndex != want {
				t.Errorf("the root is of %d leaves, error %v, want %d", root.NextIndex, err, want)
			}
			s, err := p.AgreedTree(t.Context(), 0, 0)
			if err != nil || s.Tree.NextIndex != want {
				t.Errorf("the agreed tree has %d leaves, error %v, want %d", s.Tree.NextIndex, err, want)
			}
		}
		setTree(1, 100, 6)
		all[0].set(100, p.pool.MerkleTree, invented(t, p.pool, 6, 1))
		checkAgreed(6)
		setTree(1, 101, 8)
		all[0].set(101, p.pool.MerkleTree, invented(t, p.pool, 8, 1, 2))
		checkAgreed(8)
		all[1].fail(errors.New("down"))
		setTree(0, 102, 9)
		checkAgreed(9)
	})
}

// TestTreeOfAnOldSlotIsBehind: such a tree may lack newer roots.
func TestTreeOfAnOldSlotIsBehind(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := new(accounts)
		p, err := NewPool(PoolOptions{
			Accounts: a, Pool: testPool(t), Now: time.Now,
			SlotIsOld: func(slot uint64, at time.Time) bool { return slot < 100 && time.Since(at) < time.Minute },
		})
		if err != nil {
			t.Fatal(err)
		}
		for slot, want := range map[uint64]bool{99: true, 100: false} {
			a.set(slot, p.pool.MerkleTree, treeOf(t, p.pool, 2))
			time.Sleep(2 * time.Minute) // so that a lower slot is not refused as behind
			if s := mustTree(t, p, 0); s.Slot != slot || s.Behind != want {
				t.Errorf("the tree is of slot %d, behind: %v; want slot %d, behind: %v", s.Slot, s.Behind, slot, want)
			}
		}
	})
}

// TestAgreedTreeHasTheLowerSlot: other relays get this slot, so that a relay whose
// endpoint is behind does not refuse the root as stale. One endpoint alone could claim any slot.
func TestAgreedTreeHasTheLowerSlot(t *testing.T) {
	bubble(t, func(t *testing.T) {
		all := accountSources{new(accounts), new(accounts)}
		var changedSlots []uint64
		p, err := NewPool(PoolOptions{
			Accounts: all[0], AllEndpoints: all.accountAtAll, Pool: testPool(t), Now: time.Now,
			Corroborated: func(uint64) bool { return false }, SlotIsOld: func(uint64, time.Time) bool { return true },
			Changed: func(s onchain.Snapshot, _ error) {
				if !s.Doubtful {
					changedSlots = append(changedSlots, s.Slot)
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, slot := range []uint64{1_000_000, 100} {
			all[i].set(slot, p.pool.MerkleTree, treeOf(t, p.pool, 6))
		}
		for name, read := range map[string]func() (onchain.Snapshot, error){
			"the agreed tree":              func() (onchain.Snapshot, error) { return p.AgreedTree(t.Context(), 0, 0) },
			"the tree for an unknown root": func() (onchain.Snapshot, error) { return p.TreeWith(t.Context(), [32]byte{7}, time.Minute) },
		} {
			if s, err := read(); err != nil || s.Slot != 100 || s.Doubtful || s.Behind {
				t.Errorf("%s is of slot %d, doubtful: %v, behind: %v, error %v, want slot 100", name, s.Slot, s.Doubtful, s.Behind, err)
			}
		}
		if diff := cmp.Diff([]uint64{100}, changedSlots); diff != "" {
			t.Errorf("slots passed to Changed differ (-want +got):\n%s", diff)
		}
	})
}

// TestAgreedTreeWithoutAnswers: AgreedTree returns the error of the failed read.
func TestAgreedTreeWithoutAnswers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, all, setTree := newPoolAt(t, 2)
		_, err := p.AgreedTree(t.Context(), 0, 0)
		checkRefusal(t, err, refusal.PoolNotInitialised)
		setTree(0, 100, 6)
		setTree(1, 100, 6)
		time.Sleep(time.Second)
		if s, err := p.AgreedTree(t.Context(), 0, 0); err != nil || s.Tree.NextIndex != 6 {
			t.Fatalf("the agreed tree is %+v, error %v, want 6 leaves", s, err)
		}
		for _, a := range all {
			a.fail(errors.New("down"))
		}
		time.Sleep(time.Second)
		_, err = p.AgreedTree(t.Context(), 0, 0)
		checkRefusal(t, err, refusal.ChainUnavailable)
		if !errors.Is(err, errNoAnswer) {
			t.Errorf("error is %v, want %v", err, errNoAnswer)
		}
	})
}

// A request waits for what is wrong with the endpoints, and for nothing else.
func TestEndpointsThatDoNotAgreeAreAnOutage(t *testing.T) {
	t.Parallel()
	for _, err := range []error{errNoAnswer, errOneAnswer, errTreesDiffer} {
		if !errors.Is(unavailable(err), onchain.ErrUnavailable) {
			t.Errorf("%q is no outage of the chain", err)
		}
	}
}

func TestRootWithoutAgreement(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, all, setTree := newPoolAt(t, 2)
		setTree(0, 100, 6)
		all[1].set(100, p.pool.MerkleTree, invented(t, p.pool, 0, 1, 2))
		root, err := p.Root(t.Context(), "")
		if err != nil || root.NextIndex != 6 {
			t.Errorf("the root is of %d leaves, error %v, want 6", root.NextIndex, err)
		}
		_, err = p.AgreedTree(t.Context(), 0, 0)
		checkRefusal(t, err, refusal.ChainUnavailable)
	})
}
