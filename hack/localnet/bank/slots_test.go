package bank_test

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

func TestSlotChangesAreToldInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLedger(t)
		var got []bank.SlotChange
		cancel := l.OnSlot(func(c bank.SlotChange) {
			// Whatever a subscriber asks the bank, it must not wait for itself.
			l.Read(bank.Processed, func(v bank.View) {
				if v.Slot() < c.Slot {
					t.Errorf("told of slot %d while the chain is at %d", c.Slot, v.Slot())
				}
			})
			got = append(got, c)
		})
		l.Advance(2)
		l.Skip(2)
		if _, err := l.Fork(2, nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		want := []bank.SlotChange{{Slot: 2, Parent: 1}, {Slot: 3, Parent: 2}, {Slot: 6, Parent: 3}, {Slot: 7, Parent: 2}, {Slot: 8, Parent: 7}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		l.Advance(finalizeAfter)
		synctest.Wait()
		l.Read(bank.Finalized, func(v bank.View) {
			if last := got[len(got)-1]; last.Root != v.Slot() || v.Slot() == 0 {
				t.Errorf("the last change is %+v, want root %d", last, v.Slot())
			}
		})
		cancel()
		cancel()
		told := len(got)
		l.Advance(1)
		synctest.Wait()
		if len(got) != told {
			t.Error("told of a change after cancel")
		}
	})
}

func TestASlowSubscriberDelaysNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLedger(t)
		release := make(chan struct{})
		var slow, quick []uint64
		defer l.OnSlot(func(c bank.SlotChange) { <-release; slow = append(slow, c.Slot) })()
		defer l.OnSlot(func(c bank.SlotChange) { quick = append(quick, c.Slot) })()
		for range 20 {
			l.Advance(100)
			synctest.Wait()
		}
		if len(quick) != 2000 {
			t.Errorf("the quick one was told %d changes, want 2000", len(quick))
		}
		close(release)
		synctest.Wait()
		if n := len(slow); n > 1200 || slow[n-1] != 2001 {
			t.Errorf("the slow one was told %d changes up to %d, want the newest 1024 or so up to 2001", n, slow[n-1])
		}
	})
}

func TestBlocksOfARange(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.Advance(3)
	l.Skip(2)
	l.Advance(confirmAfter + 1)
	l.Read(bank.Confirmed, func(v bank.View) {
		for _, test := range []struct {
			first uint64
			limit int
			want  []uint64
		}{
			{3, 2, []uint64{3, 4}}, {3, 3, []uint64{3, 4, 7}}, {5, 100, []uint64{7, 8}}, {0, 0, []uint64{}}, {100, 5, []uint64{}},
		} {
			if diff := cmp.Diff(test.want, v.BlocksWithLimit(test.first, test.limit)); diff != "" {
				t.Errorf("%d from slot %d (-want +got):\n%s", test.limit, test.first, diff)
			}
		}
	})
}
