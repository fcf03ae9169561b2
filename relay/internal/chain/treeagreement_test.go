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
		"one shows what an endpoint behind has, at a later slot":  {[]onchain.Snapshot{honest(101, 9), honest(95, 5), honest(101, 5)}, &six, uint64(9)},
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

// While the others fail to answer, an endpoint's leaves may be made up. Once others answer, they are forgotten.
func TestWhatOneEndpointShowsAloneIsProvisional(t *testing.T) {
	const corroborated, provisional, believed = "corroborated", "provisional", "believed"
	pool := testPool(t)
	honest := func(leaves byte) *onchain.Account { return treeOf(t, pool, leaves) }
	lie := invented(t, pool, 6, 1, 2)
	longer := invented(t, pool, 6, 1, 2, 3)
	type step struct {
		seconds int
		shown   [3]*onchain.Account
		behind  uint64 // slots of the second; of the third, twice as many
		leaves  uint64
		word    string
	}
	agree := step{1, [3]*onchain.Account{honest(6), honest(6), honest(6)}, 0, 6, corroborated}
	for name, steps := range map[string][]step{
		"the others have never answered": {
			{10, [3]*onchain.Account{honest(5)}, 0, 5, provisional},
			{1, [3]*onchain.Account{honest(5)}, 0, 5, believed},
		},
		"the others fail to answer, and contradict it afterwards": {
			agree,
			{5, [3]*onchain.Account{lie}, 0, 8, provisional},
			{5, [3]*onchain.Account{longer}, 0, 9, provisional},
			{15, [3]*onchain.Account{longer, honest(7)}, 0, 6, corroborated},
			{10, [3]*onchain.Account{longer}, 0, 9, provisional},
			{1, [3]*onchain.Account{longer, honest(7), honest(7)}, 0, 7, corroborated},
		},
		"another one fails to answer after it did itself": {
			agree,
			{10, [3]*onchain.Account{nil, honest(6)}, 0, 6, provisional},
			{5, [3]*onchain.Account{nil, honest(6)}, 0, 6, believed},
			{10, [3]*onchain.Account{lie}, 0, 8, provisional},
			{5, [3]*onchain.Account{lie}, 0, 8, believed},
			{5, [3]*onchain.Account{nil, honest(6)}, 0, 8, provisional}, // it may be behind
		},
		"the others are behind": {
			agree,
			{15, [3]*onchain.Account{lie, honest(5), honest(5)}, 30, 8, provisional},
		},
		"another one's slot is impossible": {
			agree,
			{15, [3]*onchain.Account{lie, honest(6)}, 1 << 40, 8, provisional},
		},
		"the others are far behind": {
			agree,
			{10, [3]*onchain.Account{honest(7), honest(5)}, maxTreeLag + 1, 7, provisional},
			{5, [3]*onchain.Account{honest(9), honest(5)}, maxTreeLag + 1, 9, believed},
		},
		"the others stay away, and one comes back": {
			agree,
			{10, [3]*onchain.Account{honest(7)}, 0, 7, provisional},
			{5, [3]*onchain.Account{honest(9)}, 0, 9, believed},
			{5, [3]*onchain.Account{honest(10), nil, honest(8)}, 20, 8, corroborated},
		},
		"a fork removes leaves, and the lie continues the dead one": {
			agree,
			{20, [3]*onchain.Account{lie, honest(5), honest(5)}, 0, 5, corroborated},
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p, all, _ := newPoolAt(t, 3)
				time.Sleep(time.Minute) // until somebody asks
				slot := uint64(1000)
				for i, step := range steps {
					for range step.seconds {
						slot += 2
						for k, a := range all {
							a.fail(errors.New("down"))
							if step.shown[k] != nil {
								a.set(slot-min(uint64(k)*step.behind, slot), pool.MerkleTree, step.shown[k])
							}
						}
						time.Sleep(time.Second)
						s, err := p.AgreedTree(t.Context(), 0, 0)
						word := map[[2]bool]string{{true, false}: corroborated, {false, true}: provisional, {false, false}: believed}[[2]bool{s.Corroborated, s.Provisional}]
						if err != nil || s.Tree.NextIndex != step.leaves || word != step.word {
							t.Fatalf("in step %d the agreed tree has %d leaves, and is %s, error %v; want %d, %s", i+1, s.Tree.NextIndex, word, err, step.leaves, step.word)
						}
					}
				}
			})
		})
	}
}

func TestATreeThatOthersContradictIsForgotten(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, all, setTree := newPoolAt(t, 2)
		read := func(maxAge time.Duration, want uint64) {
			t.Helper()
			time.Sleep(time.Second)
			if s, err := p.AgreedTree(t.Context(), 0, maxAge); err != nil || s.Tree.NextIndex != want {
				t.Errorf("the agreed tree has %d leaves, error %v, want %d", s.Tree.NextIndex, err, want)
			}
		}
		setTree(0, 100, 6)
		setTree(1, 100, 6)
		read(0, 6)
		all[1].fail(errors.New("down"))
		all[0].set(102, p.pool.MerkleTree, invented(t, p.pool, 6, 1, 2))
		for range 12 {
			read(0, 8)
		}
		all[0].set(104, p.pool.MerkleTree, invented(t, p.pool, 4, 1, 2))
		all[1].set(104, p.pool.MerkleTree, invented(t, p.pool, 5, 66))
		read(0, 6)
		read(10*time.Second, 6)
		all[0].set(108, p.pool.MerkleTree, invented(t, p.pool, 6, 1))
		all[1].set(107, p.pool.MerkleTree, invented(t, p.pool, 6, 66))
		read(0, 6)
		if s := p.lastAgreed(); s.Slot != 107 || !s.Contested || !s.Behind {
			t.Errorf("both have the tree, and differ after it: it is at slot %d, contested %t, behind %t; want slot 107", s.Slot, s.Contested, s.Behind)
		}
		all[1].fail(errors.New("down"))
		for range 70 {
			read(0, 7)
		}
		all[0].set(110, p.pool.MerkleTree, invented(t, p.pool, 4, 1, 2))
		all[1].set(110, p.pool.MerkleTree, invented(t, p.pool, 5, 66))
		for _, maxAge := range []time.Duration{0, 10 * time.Second} {
			_, err := p.AgreedTree(t.Context(), 0, maxAge)
			checkRefusal(t, err, refusal.ChainUnavailable)
		}
	})
}

// Of four endpoints, two are on each fork.
func TestAnAgreedTreeHasItsOwnRoot(t *testing.T) {
	t.Parallel()
	pool := testPool(t)
	var all []onchain.Snapshot
	for _, leaf := range []byte{1, 1, 2, 2} {
		tree, err := pool.Profile.ParseTree(invented(t, pool, 6, leaf).Data)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, onchain.Snapshot{Tree: tree, Slot: 100 + uint64(leaf), Checked: true})
	}
	for range all {
		all = append(all[1:], all[0])
		if s, ok := agreedTree(all, nil, time.Unix(2000, 0)); !ok || s.Tree.SelfCheck() != nil {
			t.Errorf("the agreed tree is %+v, %v", s, s.Tree.SelfCheck())
		}
	}
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
		all[0].set(101, p.pool.MerkleTree, padded(t, p.pool, 8, 12))
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
