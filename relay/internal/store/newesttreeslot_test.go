package store

import (
	"sync"
	"testing"

	"github.com/gagliardetto/solana-go"
)

func TestHighestTreeSlotOfAllProcessesIsKept(t *testing.T) {
	t.Parallel()
	s := open(t)
	pool, other := solana.PublicKey{1}, solana.PublicKey{2}
	want := func(pool solana.PublicKey, slot uint64) {
		t.Helper()
		if got, err := s.HighestTreeSlot(t.Context(), pool); err != nil || got != slot {
			t.Errorf("the highest slot is %d (%v), want %d", got, err, slot)
		}
	}
	want(pool, 0)
	var processes sync.WaitGroup
	for n := uint64(1); n <= 20; n++ {
		processes.Go(func() {
			if err := s.RecordTreeSlot(t.Context(), pool, n); err != nil {
				t.Error(err)
			}
		})
	}
	processes.Wait()
	want(pool, 20)
	if err := s.RecordTreeSlot(t.Context(), pool, 7); err != nil {
		t.Fatal(err)
	}
	want(pool, 20)
	want(other, 0)
}
