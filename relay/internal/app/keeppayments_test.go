package app

import (
	"fmt"
	"testing"
)

// The ledger need not call an endpoint for what was paid in blocks that the index has read, once they are final.
func TestPaymentsInReadBlocksAreKept(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	s := newFixture(t, fixtureOptions{vk: vk})
	s.waitHealthy()
	f.depositNotes(s) // paid by others
	const submissions = 3
	s.waitCompleted(f.submitWithdrawals(s, submissions))
	own := fmt.Sprintf(`SELECT coalesce(sum(json_array_length(payments)), 0) FROM block_payments WHERE payer = '\x%x'`, s.payer.PublicKey().Bytes())
	eventually(t, "the payments of the submissions are kept", func() bool { return s.queryInt(own) == submissions })
	eventually(t, "ledger and submissions know what is final", func() bool {
		return s.app.ledger.Finalized(t.Context(), 1) > 0 && s.app.submissions.Manager.EstimateFinalized() > 0
	})
}
