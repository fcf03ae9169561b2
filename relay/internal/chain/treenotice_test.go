package chain

import (
	"testing"
	"time"
)

func TestTreeIsReadAgainAfterANotice(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := new(accounts)
		p, _ := newPool(t, a)
		a.set(10, p.pool.MerkleTree, treeOf(t, p.pool, 2))
		mustTree(t, p, time.Minute)
		a.set(11, p.pool.MerkleTree, treeOf(t, p.pool, 4))
		tick()
		if s := mustTree(t, p, time.Minute); s.Tree.NextIndex != 2 {
			t.Errorf("index is %d, want 2 from the cache: nobody has noticed the change", s.Tree.NextIndex)
		}
		p.NoticeChange(0)
		for range 2 {
			if s := mustTree(t, p, time.Minute); s.Tree.NextIndex != 4 {
				t.Errorf("index is %d, want 4, because of the notice", s.Tree.NextIndex)
			}
		}
		if a.count() != 2 {
			t.Errorf("%d reads, want 2: one for each state", a.count())
		}
	})
}

func TestANoticeOfAKnownStateCausesNoRead(t *testing.T) {
	for name, tt := range map[string]struct {
		slot     uint64 // of the notice
		doubtful bool
		want     int // reads
	}{
		"an earlier slot":                   {slot: 9, want: 1},
		"the slot of the known tree":        {slot: 10, want: 1},
		"a later slot":                      {slot: 11, want: 2},
		"a slot that is not known":          {slot: 0, want: 2},
		"the known tree's slot is doubtful": {slot: 9, doubtful: true, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				a := new(accounts)
				p, _ := newPool(t, a)
				p.corroborated = func(uint64) bool { return !tt.doubtful }
				a.set(10, p.pool.MerkleTree, treeOf(t, p.pool, 2))
				mustTree(t, p, time.Minute)
				tick()
				p.NoticeChange(tt.slot)
				if mustTree(t, p, time.Minute); a.count() != tt.want {
					t.Errorf("%d reads, want %d", a.count(), tt.want)
				}
			})
		})
	}
}

// An endpoint may report changes without end.
func TestNoticedReadsAreRateLimited(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := new(accounts)
		p, _ := newPool(t, a)
		a.set(10, p.pool.MerkleTree, treeOf(t, p.pool, 2))
		mustTree(t, p, 0)
		began := time.Now()
		for range 8 {
			tick()
			p.NoticeChange(0)
			mustTree(t, p, time.Minute)
		}
		if took := time.Since(began).Truncate(time.Millisecond); took != 8*p.interval || a.count() != 9 {
			t.Errorf("%d reads took %s, want 9 in %s", a.count(), took, 8*p.interval)
		}
	})
}

// A notice counts until the tree is as new, also with another one after it.
func TestANoticeIsNotForgottenBeforeTheTreeIsAsNew(t *testing.T) {
	for name, slots := range map[string][]uint64{
		"an earlier slot follows":              {20, 11},
		"a slot follows one that is not known": {0, 11},
		"one that is not known follows":        {11, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				a := new(accounts)
				p, _ := newPool(t, a)
				a.set(10, p.pool.MerkleTree, treeOf(t, p.pool, 2))
				mustTree(t, p, time.Minute)
				tick()
				for _, slot := range slots {
					p.NoticeChange(slot)
				}
				p.mu.Lock()
				p.last.Slot = 12 // as another process has read it, before the notices
				p.mu.Unlock()
				a.set(20, p.pool.MerkleTree, treeOf(t, p.pool, 4))
				if s := mustTree(t, p, time.Minute); s.Tree.NextIndex != 4 {
					t.Errorf("the tree has %d leaves, want 4", s.Tree.NextIndex)
				}
			})
		})
	}
}
