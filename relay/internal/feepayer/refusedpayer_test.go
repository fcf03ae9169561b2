package feepayer

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relaypool/relaypool/relay/refusal"
)

func TestRefusedPayerIsNotPicked(t *testing.T) {
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
				t.Error("a payer that the chain refused is picked")
			}
		}
	})
}

func TestNewBalanceClosesTheBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wallets{lamports: []uint64{1000}, slot: 1}
		p := newPayers(t, w, nil)
		refresh(t, p)
		p.MarkRefused(p.Keys()[0], errDown)
		checkRefusal(t, p, 1, refusal.FeePayerEmpty) // the balance was read before the refusal
		time.Sleep(minInterval)
		checkRefusal(t, p, 1, "")

		// After the second refusal, a reading of the same amount does not close the breaker, and
		// a reading of another amount does.
		p.MarkRefused(p.Keys()[0], errDown)
		time.Sleep(minInterval)
		checkRefusal(t, p, 1, refusal.FeePayerEmpty)
		w.set(2, nil, 2000)
		time.Sleep(minInterval)
		checkRefusal(t, p, 1, "")
	})
}

func TestBalanceReadBeforeTheRefusalDoesNotCloseTheBreaker(t *testing.T) {
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

func TestOneAttemptProbesRefusedPayer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wallets{lamports: []uint64{1000}, slot: 1}
		p := newPayers(t, w, nil)
		refresh(t, p)
		p.mu.Lock()
		p.accounts[0].breaker.refusals = 1 // the next one is the second in a row, so the same balance does not close the breaker
		p.mu.Unlock()
		p.MarkRefused(p.Keys()[0], errDown)
		p.MarkRefused(p.Keys()[0], errDown) // another attempt from before the breaker opened
		time.Sleep(2*minProbeDelay - time.Nanosecond)
		checkRefusal(t, p, 1, refusal.FeePayerEmpty)
		time.Sleep(time.Nanosecond)
		if got := pick(t, p, 1); got != 0 {
			t.Fatalf("payer %d is picked, want 0", got)
		}
		checkRefusal(t, p, 1, refusal.FeePayerEmpty) // only one probe at a time

		p.Release(p.Keys()[0], 1) // the probe's result is unknown
		checkRefusal(t, p, 1, refusal.FeePayerEmpty)
		time.Sleep(2 * minProbeDelay)
		pick(t, p, 1)
		p.MarkRefused(p.Keys()[0], errDown)
		p.Release(p.Keys()[0], 1)
		time.Sleep(3 * minProbeDelay)
		checkRefusal(t, p, 1, refusal.FeePayerEmpty) // the wait has doubled
		time.Sleep(minProbeDelay)
		pick(t, p, 1)
		p.MarkWorking(p.Keys()[0])
		checkRefusal(t, p, 1, "")
		checkRefusal(t, p, 1, "")
	})
}

func TestProbeDelayIsBounded(t *testing.T) {
	t.Parallel()
	b := breaker{refusals: 1 << 40}
	if got := b.wait(); got != maxProbeDelay {
		t.Errorf("wait is %s, want %s", got, maxProbeDelay)
	}
}
