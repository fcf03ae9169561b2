package feepayer

import (
	"testing"
	"testing/synctest"
)

// TestCancelledReservationsAreNotSpent: while the chain is unreachable, steps fail before they sign
// and are retried, and every reading fails. That must not make the payers look empty.
func TestCancelledReservationsAreNotSpent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wallets{lamports: []uint64{1000}, slot: 1}
		p := newPayers(t, w, nil)
		refresh(t, p)
		w.set(2, errDown, 1000)
		for range 10 {
			pick(t, p, 600)
			p.Cancel(p.Keys()[0], 600)
		}
		if b := p.Balances()[0]; b.InFlight != 0 || b.Reserved != 0 {
			t.Errorf("%d attempts are in flight and %d lamports reserved, want none", b.InFlight, b.Reserved)
		}
		checkCode(t, p.Ready(t.Context(), 600), "")
	})
}
