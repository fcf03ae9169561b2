package chain

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/relaypool/relaypool/relay/refusal"
)

func TestProcessedTreeIsReadOnceForAllWhoAskWithinTheInterval(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := &accounts{processed: true, delay: time.Millisecond}
		p, changes := newPool(t, a)
		ask := func(wantLeaves uint64, wantReads int) {
			t.Helper()
			var together sync.WaitGroup
			for range 8 {
				together.Go(func() {
					s, err := p.ProcessedTree(t.Context())
					if err != nil || s.Tree.NextIndex != wantLeaves || !s.Checked || time.Since(s.At) > p.interval+a.delay {
						t.Errorf("the tree is %+v (%v), want one of %d leaves that was just read", s, err, wantLeaves)
					}
				})
			}
			together.Wait()
			if a.count() != wantReads {
				t.Errorf("%d reads, want %d", a.count(), wantReads)
			}
		}
		a.set(10, p.pool.MerkleTree, treeOf(t, p.pool, 2))
		ask(2, 1)
		a.set(11, p.pool.MerkleTree, treeOf(t, p.pool, 4))
		time.Sleep(p.interval / 2)
		ask(2, 1)
		time.Sleep(p.interval)
		ask(4, 2)
		if len(*changes) != 0 || p.cached() != nil {
			t.Errorf("a processed tree counts as a confirmed one: %v", *changes)
		}

		a.fail(errors.New("down"))
		time.Sleep(2 * p.interval)
		for range 3 {
			_, err := p.ProcessedTree(t.Context())
			if r, ok := refusal.As(err); !ok || r.Code != refusal.ChainUnavailable {
				t.Errorf("the error is %v, want chain_unavailable", err)
			}
		}
		if a.count() != 3 {
			t.Errorf("%d reads after a failure, want one more for all within the interval", a.count())
		}
	})
}
