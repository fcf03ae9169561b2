package chain

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// fleet is a ReadOnce in memory.
type fleet struct {
	lock   chan struct{} // not a mutex: virtual time has to pass while processes wait
	shared map[string]sharedValue
}

type sharedValue struct {
	value []byte
	at    time.Time
}

func newFleet() *fleet {
	return &fleet{lock: make(chan struct{}, 1), shared: map[string]sharedValue{}}
}

func (f *fleet) readOnce(ctx context.Context, name string, use func([]byte, time.Duration) bool, read func(context.Context) []byte) {
	f.lock <- struct{}{}
	defer func() { <-f.lock }()
	if v, ok := f.shared[name]; ok && use(v.value, time.Since(v.at)) {
		return
	}
	at := time.Now()
	if value := read(ctx); value != nil {
		f.shared[name] = sharedValue{value, at}
	}
}

// newPeers returns two processes' readers of a pool at n endpoints, each with accounts of its own so that reads
// are counted for each process.
func newPeers(t *testing.T, n int) (peers [2]*PoolReader, all [2]accountSources, setTree func(peer int, slot uint64, a *onchain.Account)) {
	t.Helper()
	f := newFleet()
	for i := range peers {
		for range n {
			all[i] = append(all[i], new(accounts))
		}
		o := PoolOptions{Accounts: all[i][0], Pool: testPool(t), Now: time.Now, ReadOnce: f.readOnce}
		if n > 1 {
			o.AllEndpoints = all[i].accountAtAll
		}
		var err error
		if peers[i], err = NewPool(o); err != nil {
			t.Fatal(err)
		}
	}
	return peers, all, func(peer int, slot uint64, a *onchain.Account) {
		for _, endpoint := range all[peer] {
			endpoint.set(slot, peers[peer].pool.MerkleTree, a)
		}
	}
}

func (s accountSources) count() (n int) {
	for _, a := range s {
		n += a.count()
	}
	return n
}

func treeRoot(t *testing.T, pool *shieldpool.Pool, leaves byte) [32]byte {
	t.Helper()
	tree, err := pool.Profile.ParseTree(treeOf(t, pool, leaves).Data)
	if err != nil {
		t.Fatal(err)
	}
	return tree.Root
}

func TestProcessesShareTheTree(t *testing.T) {
	for name, endpoints := range map[string]int{"one endpoint": 1, "two endpoints": 2} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				peers, all, setTree := newPeers(t, endpoints)
				pool := peers[0].pool
				for i := range peers {
					setTree(i, 100, treeOf(t, pool, 4))
				}
				agreed := func(peer int, minSlot uint64, maxAge time.Duration) onchain.Snapshot {
					t.Helper()
					s, err := peers[peer].AgreedTree(t.Context(), minSlot, maxAge)
					if err != nil || s.Corroborated != (endpoints > 1) || !s.Checked || s.Doubtful {
						t.Errorf("the tree is %+v, error %v", s, err)
					}
					return s
				}
				agreed(0, 0, time.Second)
				time.Sleep(time.Millisecond)
				if s := agreed(1, 100, time.Second); s.Tree.NextIndex != 4 || s.Slot != 100 || time.Since(s.At) < time.Millisecond || time.Since(s.At) > time.Second || all[1].count() != 0 {
					t.Errorf("the second process has a tree of %d leaves at slot %d, read %s ago, after %d reads; want that of the first, and no reads", s.Tree.NextIndex, s.Slot, time.Since(s.At), all[1].count())
				}
				if mustTree(t, peers[1], time.Second); all[1].count() != 0 {
					t.Error("the shared tree is not the known one")
				}
				for i, need := range []struct {
					what   string
					slot   uint64
					maxAge time.Duration
				}{{"a later slot", 101, time.Minute}, {"a newer read", 0, time.Millisecond}, {"a read after the call", 0, 0}} {
					time.Sleep(time.Second)
					setTree(1, 101+uint64(i), treeOf(t, pool, 4))
					before := all[1].count()
					if agreed(1, need.slot, need.maxAge); all[1].count() == before {
						t.Errorf("%s is needed, and nothing was read", need.what)
					}
				}
			})
		})
	}
}

// What another process shares is not believed if it contradicts what this one knows.
func TestASharedTreeIsUsedOnlyIfItFits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		own, shared byte // leaves
		slot        uint64
		damaged     bool
		want        uint64
		wantReads   bool
	}{
		"more leaves":                         {own: 4, shared: 6, slot: 101, want: 6},
		"the same leaves":                     {own: 4, shared: 4, slot: 101, want: 4},
		"fewer leaves, as after a fork":       {own: 4, shared: 2, slot: 101, want: 4, wantReads: true},
		"a slot that no endpoint has reached": {own: 4, shared: 6, slot: 1 << 40, want: 4, wantReads: true},
		"an account that is inconsistent":     {own: 4, shared: 6, slot: 101, damaged: true, want: 4, wantReads: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				peers, all, setTree := newPeers(t, 2)
				pool := peers[0].pool
				peers[1].corroborated = func(slot uint64) bool { return slot <= 101 }
				setTree(0, tt.slot, treeOf(t, pool, tt.shared))
				setTree(1, 100, treeOf(t, pool, tt.own))
				f := newFleet()
				peers[0].readOnce, peers[1].readOnce = f.readOnce, nil
				for _, p := range []*PoolReader{peers[1], peers[0]} {
					if _, err := p.AgreedTree(t.Context(), 0, time.Second); err != nil {
						t.Fatal(err)
					}
					time.Sleep(5 * time.Second) // the second process's own tree is too old then
				}
				if tt.damaged {
					for _, v := range f.shared {
						root := treeRoot(t, pool, tt.shared)
						v.value[bytes.Index(v.value, root[:])] ^= 1
					}
				}
				peers[1].readOnce = f.readOnce
				before := all[1].count()
				s, err := peers[1].AgreedTree(t.Context(), 0, 7*time.Second)
				if err != nil || s.Tree.NextIndex != tt.want || (all[1].count() > before) != tt.wantReads {
					t.Errorf("the tree has %d leaves, error %v, after %d reads; want %d leaves, and reads: %t", s.Tree.NextIndex, err, all[1].count()-before, tt.want, tt.wantReads)
				}
			})
		})
	}
}

// A tree that only one of several endpoints shows is judged by each process itself.
func TestOnlyACertainTreeIsShared(t *testing.T) {
	bubble(t, func(t *testing.T) {
		peers, all, setTree := newPeers(t, 2)
		setTree(0, 100, treeOf(t, peers[0].pool, 4))
		all[0][1].fail(context.DeadlineExceeded)
		if s, err := peers[0].AgreedTree(t.Context(), 0, 0); err != nil || s.Corroborated {
			t.Fatalf("the tree of one endpoint is %+v, error %v", s, err)
		}
		setTree(1, 100, treeOf(t, peers[1].pool, 6))
		own := func(maxAge time.Duration) {
			t.Helper()
			if s, err := peers[1].AgreedTree(t.Context(), 0, maxAge); err != nil || s.Tree.NextIndex != 6 {
				t.Errorf("the tree has %d leaves, error %v, want the process's own with 6", s.Tree.NextIndex, err)
			}
		}
		own(time.Minute)
		for _, added := range []byte{0, 1} { // they agree, and then contradict each other
			time.Sleep(10 * time.Second)
			setTree(0, 101, treeOf(t, peers[0].pool, 6))
			if added > 0 {
				all[0][0].set(101, peers[0].pool.MerkleTree, invented(t, peers[0].pool, 6, 1))
				all[0][1].set(101, peers[0].pool.MerkleTree, invented(t, peers[0].pool, 6, 2))
			}
			if s, err := peers[0].AgreedTree(t.Context(), 0, time.Second); err != nil || s.Tree.NextIndex != 6 || s.Contested != (added > 0) {
				t.Errorf("the tree has %d leaves, contested %t, error %v", s.Tree.NextIndex, s.Contested, err)
			}
			before := all[1].count()
			own(time.Second)
			if read := all[1].count() > before; read != (added > 0) {
				t.Errorf("contested trees: %t; another process reads its own: %t", added > 0, read)
			}
		}
	})
}

// A shared tree shows that the endpoints which did not answer this process answer others.
func TestASharedTreeEndsThatOneEndpointIsAlone(t *testing.T) {
	for name, age := range map[string]time.Duration{"newer than this process's reads": time.Millisecond, "older than its last read": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				peers, all, setTree := newPeers(t, 2)
				for i := range peers {
					setTree(i, 100, treeOf(t, peers[i].pool, 4))
				}
				all[1][1].fail(context.DeadlineExceeded)
				alone := func(want bool) {
					t.Helper()
					time.Sleep(time.Second)
					if s, err := peers[1].AgreedTree(t.Context(), 0, 0); err != nil || s.Provisional != want {
						t.Errorf("the tree that one endpoint shows is provisional: %t, error %v; want %t", s.Provisional, err, want)
					}
				}
				for range 8 {
					alone(true)
				}
				shared := slices.Concat(treeOf(t, peers[1].pool, 4).Data, []byte{100, 0, 0, 0, 0, 0, 0, 0})
				time.Sleep(time.Second)
				if !peers[1].useSharedTree(shared, age) {
					t.Fatal("the shared tree is not used")
				}
				for range 10 {
					alone(true)
				}
				alone(false)
				all[1][0].set(102, peers[1].pool.MerkleTree, invented(t, peers[1].pool, 4, 1, 2))
				alone(false)
				all[1][1].set(102, peers[1].pool.MerkleTree, treeOf(t, peers[1].pool, 5))
				if s, err := peers[1].AgreedTree(t.Context(), 0, 0); err != nil || s.Tree.NextIndex != 4 {
					t.Errorf("the tree has %d leaves, error %v; want that of the other process, which both continue", s.Tree.NextIndex, err)
				}
			})
		})
	}
}

func TestProcessesShareTheBlockhash(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		n := [2]network{newNetwork("a"), newNetwork("a")}
		var all [2]*Endpoints
		for i := range all {
			all[i], _ = newEndpoints(t, n[i], endpointsNamed("a"), func(o *EndpointsOptions) { o.ReadOnce = f.readOnce })
		}
		latest := func(i int) onchain.Blockhash {
			t.Helper()
			h, err := all[i].LatestBlockhash(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return h
		}
		const seconds = 60
		for second := range uint64(seconds) {
			for i := range n {
				n[i]["a"].setSlot(100 + 5*second)
			}
			for range 10 {
				a, b := latest(0), latest(1)
				if difference(a.Slot, b.Slot) > 5 {
					t.Errorf("the processes have blockhashes of slots %d and %d", a.Slot, b.Slot)
				}
				if b.Hash != hashOf(b.Slot) || b.LastValidBlockHeight != b.Slot+150 || b.Slot+10 < 100+5*second {
					t.Errorf("in slot %d the second process has the blockhash %+v", 100+5*second, b)
				}
				time.Sleep(100 * time.Millisecond)
			}
		}
		reads := [2]int{n[0]["a"].count("getLatestBlockhash"), n[1]["a"].count("getLatestBlockhash")}
		if sum := reads[0] + reads[1]; sum > 2*seconds+seconds/5+2 || reads[0] < seconds/6 || reads[1] < seconds/6 {
			t.Errorf("in %d seconds the processes read %d times, want twice a second together, and each every five seconds", seconds, reads)
		}
	})
}

// What another process shares must not make a transaction seem expired too early, or never.
func TestASharedBlockhashIsChecked(t *testing.T) {
	t.Parallel()
	const slot = 100_000
	for name, tt := range map[string]struct {
		hosts            []string
		slot, validUntil uint64
		cut              int // bytes that are missing
		wantUsed         bool
	}{
		"as expected":                         {hosts: []string{"a", "b"}, slot: slot, validUntil: trueLastValid(slot), wantUsed: true},
		"valid for a little too short a time": {hosts: []string{"a", "b"}, slot: slot, validUntil: trueLastValid(slot) - 9, wantUsed: true},
		"valid for too short a time":          {hosts: []string{"a", "b"}, slot: slot, validUntil: trueLastValid(slot) - 50},
		"valid for too long":                  {hosts: []string{"a", "b"}, slot: slot, validUntil: trueLastValid(slot) + 5000},
		"a process with a single endpoint":    {hosts: []string{"a"}, slot: slot, validUntil: trueLastValid(slot), wantUsed: true},
		"a single endpoint, for too short":    {hosts: []string{"a"}, slot: slot, validUntil: 1000},
		"a single endpoint, for too long":     {hosts: []string{"a"}, slot: slot, validUntil: trueLastValid(slot) + 5000},
		"no height":                           {hosts: []string{"a"}, slot: slot, validUntil: 149},
		"a slot that is too old":              {hosts: []string{"a", "b"}, slot: slot - 50, validUntil: trueLastValid(slot - 50)},
		"a slot that nobody reached":          {hosts: []string{"a", "b"}, slot: slot + 50, validUntil: trueLastValid(slot + 50)},
		"too few bytes":                       {hosts: []string{"a", "b"}, slot: slot, validUntil: trueLastValid(slot), cut: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, f := newNetwork(tt.hosts...), newFleet()
				for _, h := range n {
					h.setHeights(slot, truth, truth)
				}
				e, _ := newEndpoints(t, n, endpointsNamed(tt.hosts...), func(o *EndpointsOptions) {
					o.ReadOnce, o.Probe = f.readOnce, time.Nanosecond
				})
				for range 2 { // for the second one, heights and slot are agreed on
					for _, ep := range e.all {
						e.pollEndpoint(t.Context(), ep)
					}
					if _, err := e.LatestBlockhash(t.Context()); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Second)
				}
				synctest.Wait()
				shared := encodeBlockhash(onchain.Blockhash{Hash: hashOf(7), Slot: tt.slot, LastValidBlockHeight: tt.validUntil})
				for name := range f.shared {
					f.shared[name] = sharedValue{shared[:len(shared)-tt.cut], time.Now()}
				}
				h, err := e.LatestBlockhash(t.Context())
				if used := h.Hash == hashOf(7); err != nil || used != tt.wantUsed || h.LastValidBlockHeight < trueLastValid(slot) {
					t.Errorf("the blockhash is %+v, error %v; want the shared one: %t, and none that ends early", h, err, tt.wantUsed)
				}
			})
		})
	}
}

// Processes with other endpoints may use the same database while their settings change.
func TestAProcessWithSeveralEndpointsUsesNothingOfOneWithASingleOne(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, n := newFleet(), newNetwork("a", "b")
		single, _ := newEndpoints(t, n, endpointsNamed("a"), func(o *EndpointsOptions) { o.ReadOnce = f.readOnce })
		several, _ := newEndpoints(t, n, endpointsNamed("a", "b"), func(o *EndpointsOptions) { o.ReadOnce, o.Probe = f.readOnce, time.Nanosecond })
		for range 2 {
			for _, e := range []*Endpoints{single, several} {
				for _, ep := range e.all {
					e.pollEndpoint(t.Context(), ep)
				}
				if _, err := e.LatestBlockhash(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second)
		}
		one, _, setOne := newPeers(t, 1)
		two, _, setTwo := newPeers(t, 2)
		one[0].readOnce, two[0].readOnce = f.readOnce, f.readOnce
		setOne(0, 100, treeOf(t, one[0].pool, 4))
		setTwo(0, 100, treeOf(t, two[0].pool, 4))
		for _, p := range []*PoolReader{one[0], two[0]} {
			if _, err := p.AgreedTree(t.Context(), 0, time.Second); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if len(f.shared) != 4 {
			t.Errorf("%d values are shared, want two of each process", len(f.shared))
		}
	})
}

// A tree that endpoints have agreed on once counts for a minute, however many processes there are.
func TestAnOldAgreementIsNotSharedAsANewOne(t *testing.T) {
	bubble(t, func(t *testing.T) {
		peers, all, setTree := newPeers(t, 2)
		pool := peers[0].pool
		for i := range peers {
			setTree(i, 100, treeOf(t, pool, 6))
		}
		var failed [2]bool
		for range 200 {
			for i, p := range peers {
				_, err := p.AgreedTree(t.Context(), 0, time.Second)
				failed[i] = err != nil
				all[i][0].set(101, pool.MerkleTree, treeOf(t, pool, 2))
				all[i][1].set(101, pool.MerkleTree, invented(t, pool, 0, 1, 2, 3))
				time.Sleep(250 * time.Millisecond)
			}
		}
		if failed != [2]bool{true, true} {
			t.Errorf("after 100 seconds without an agreement, the processes fail: %t, want both", failed)
		}
	})
}

// An endpoint may show old content at a new slot for a moment.
func TestAnEndpointWithMoreLeavesIsAskedAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		peers, all, setTree := newPeers(t, 2)
		p, pool := peers[0], peers[0].pool
		setTree(0, 100, treeOf(t, pool, 4))
		if _, err := p.AgreedTree(t.Context(), 0, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		all[0][0].set(500, pool.MerkleTree, treeOf(t, pool, 6))
		all[0][1].set(505, pool.MerkleTree, treeOf(t, pool, 4)) // old content
		if s, err := p.AgreedTree(t.Context(), 500, time.Minute); err != nil || s.Tree.NextIndex != 4 {
			t.Fatalf("the tree has %d leaves, error %v, want 4, which both endpoints had", s.Tree.NextIndex, err)
		}
		time.Sleep(time.Second)
		all[0][1].set(506, pool.MerkleTree, treeOf(t, pool, 6))
		if s, err := p.AgreedTree(t.Context(), 500, time.Minute); err != nil || s.Tree.NextIndex != 6 {
			t.Errorf("the tree has %d leaves, error %v, want 6, now that both endpoints show them", s.Tree.NextIndex, err)
		}
	})
}

// Callers do not wait until a blockhash is shared.
func TestASlowDatabaseDelaysNoBlockhash(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork("a")
		e, _ := newEndpoints(t, n, endpointsNamed("a"), func(o *EndpointsOptions) {
			o.ReadOnce = func(ctx context.Context, _ string, _ func([]byte, time.Duration) bool, read func(context.Context) []byte) {
				read(ctx)
				time.Sleep(2 * time.Second)
			}
		})
		for range 5 {
			began := time.Now()
			if _, err := e.LatestBlockhash(t.Context()); err != nil || time.Since(began) > time.Millisecond {
				t.Errorf("a blockhash comes after %s, error %v, want it at once", time.Since(began), err)
			}
			time.Sleep(700 * time.Millisecond)
		}
	})
}

// The notice of a change may come after another process has read the change for this one.
func TestANoticeOfAChangeThatAnotherProcessHasReadCausesNoRead(t *testing.T) {
	for name, tt := range map[string]struct {
		slot uint64 // of the notice
		want int    // reads
	}{
		"the slot of the shared tree": {slot: 100},
		"a later slot":                {slot: 101, want: 1},
		"a slot that is not known":    {slot: 0, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				peers, all, setTree := newPeers(t, 1)
				for i := range peers {
					setTree(i, 100, treeOf(t, peers[0].pool, 4))
				}
				_, err := peers[0].AgreedTree(t.Context(), 0, time.Second)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Millisecond)
				peers[1].NoticeChange(tt.slot)
				if _, err := peers[1].AgreedTree(t.Context(), 100, time.Second); err != nil {
					t.Fatal(err)
				}
				if s := mustTree(t, peers[1], time.Second); s.Tree.NextIndex != 4 || all[1].count() != tt.want {
					t.Errorf("the tree has %d leaves after %d reads, want 4 after %d", s.Tree.NextIndex, all[1].count(), tt.want)
				}
			})
		})
	}
}
