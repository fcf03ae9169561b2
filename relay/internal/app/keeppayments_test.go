package app

import "testing"

// The ledger needs no call for what the fleet has paid, because the index has read the blocks.
func TestPaymentsInReadBlocksAreKept(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	s := newFixture(t, fixtureOptions{vk: vk})
	s.waitHealthy()
	f.depositNotes(s) // paid by others
	const submissions = 3
	s.waitCompleted(f.submitWithdrawals(s, submissions))
	eventually(t, "the payments of the submissions are kept, and only these", func() bool {
		return s.queryInt(`SELECT coalesce(sum(json_array_length(payments)), 0) FROM block_payments`) == submissions
	})
}
