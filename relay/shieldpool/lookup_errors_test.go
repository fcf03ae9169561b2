package shieldpool

import "testing"

// TestATableThatIsGoneIsTheOperatorsFault: a lookup table that its authority closed
// while relays name it must hold the queue, not fail what clients have submitted.
func TestATableThatIsGoneIsTheOperatorsFault(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{
		"AddressLookupTableNotFound", "InvalidAddressLookupTableOwner", "InvalidAddressLookupTableData", "InvalidAddressLookupTableIndex",
	} {
		if got := ShieldPoolV1().ClassOfTransaction(&TransactionError{Kind: kind}, PoolInstruction); got == ClassBug || got == ClassBadInput {
			t.Errorf("%s is %s, which fails the submission for good: want one that waits", kind, got)
		}
	}
}
