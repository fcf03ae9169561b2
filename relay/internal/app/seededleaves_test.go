package app

import "testing"

// TestALongHistoryIsReadAndContinued reads a chain that had leaves long before the relay, and
// appends more. The list's root is the chain's.
func TestALongHistoryIsReadAndContinued(t *testing.T) {
	t.Parallel()
	const leaves = 9001
	f, vk := newForger(t)
	s := newFixture(t, fixtureOptions{vk: vk, seedLeaves: leaves})
	s.waitHealthy()
	f.depositNotes(s)
	s.waitCompleted(f.submitWithdrawals(s, 1))
	c := &client{fixture: s}
	if got := len(c.leaves(leaves + 4)); got != leaves+4 {
		t.Errorf("the list has %d leaves, want %d", got, leaves+4)
	}
}
