package feepayer

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relaypool/relaypool/relay/refusal"
)

func TestARefusedPayerIsLeftOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wallets{lamports: []uint64{1000, 900}, slot: 1}
		p := newPayers(t, w, nil)
		first := pick(t, p, 10)
		p.MarkRefused(p.Keys()[first], errDown)
		p.Release(p.Keys()[first], 10)
		if got := p.Balances()[first].State; got != StateRefused {
			t.Errorf("the payer is %s, want refused", got)
		}
		for range 3 {
			if got := pick(t, p, 10); got == first {
				t.Error("a payer that the chain refuses pays")
			}
		}
	})
}

func TestAFreshBalanceClosesTheBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wallets{lamports: []uint64{1000}, slot: 1}
		p := newPayers(t, w, nil)
		refresh(t, p)
		p.MarkRefused(p.Keys()[0], errDown)
		refused(t, p, 1, refusal.FeePayerEmpty) // the balance was read just now
		time.Sleep(minInterval)
		refused(t, p, 1, "")

		// A node shows lamports that the chain does not accept: another reading of the same
		// amount is not believed, and one of another amount is.
		p.MarkRefused(p.Keys()[0], errDown)
		time.Sleep(minInterval)
		refused(t, p, 1, refusal.FeePayerEmpty)
		w.set(2, nil, 2000)
		time.Sleep(minInterval)
		refused(t, p, 1, "")
	})
}

func TestABalanceAskedForBeforeTheRefusalProvesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wallets{lamports: []uint64{1000}, slot: 1, delay: time.Second}
		p := newPayers(t, w, nil)
		refresh(t, p)
		var group sync.WaitGroup
		group.Go(func() { refresh(t, p) })
		time.Sleep(time.Second / 2)
		p.MarkRefused(p.Keys()[0], errDown)
		group.Wait()
		if got := p.Balances()[0].State; got != StateRefused {
			t.Errorf("the payer is %s, want refused", got)
		}
		refresh(t, p)
		if got := p.Balances()[0].State; got != StateReady {
			t.Errorf("after a fresh reading the payer is %s, want ready", got)
		}
	})
}

func TestOneAttemptProbesARefusedPayer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wallets{lamports: []uint64{1000}, slot: 1}
		p := newPayers(t, w, nil)
		refresh(t, p)
		p.mu.Lock()
		p.accounts[0].breaker.refusals = 1 // the second in a row: the balance alone no longer helps
		p.mu.Unlock()
		p.MarkRefused(p.Keys()[0], errDown)
		p.MarkRefused(p.Keys()[0], errDown) // another attempt of the same time
		time.Sleep(2*minProbeDelay - time.Nanosecond)
		refused(t, p, 1, refusal.FeePayerEmpty)
		time.Sleep(time.Nanosecond)
		if got := pick(t, p, 1); got != 0 {
			t.Fatalf("payer %d pays", got)
		}
		refused(t, p, 1, refusal.FeePayerEmpty) // one at a time

		p.Release(p.Keys()[0], 1) // the result is not known
		refused(t, p, 1, refusal.FeePayerEmpty)
		time.Sleep(2 * minProbeDelay)
		pick(t, p, 1)
		p.MarkRefused(p.Keys()[0], errDown)
		p.Release(p.Keys()[0], 1)
		time.Sleep(3 * minProbeDelay)
		refused(t, p, 1, refusal.FeePayerEmpty) // the wait has doubled
		time.Sleep(minProbeDelay)
		pick(t, p, 1)
		p.MarkWorking(p.Keys()[0])
		refused(t, p, 1, "")
		refused(t, p, 1, "")
	})
}

func TestTheWaitForAProbeIsBounded(t *testing.T) {
	t.Parallel()
	b := breaker{refusals: 1 << 40}
	if got := b.wait(); got != maxProbeDelay {
		t.Errorf("wait is %s, want %s", got, maxProbeDelay)
	}
}
