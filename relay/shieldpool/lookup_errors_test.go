package shieldpool

import "testing"

// TestAClosedTableIsTheOperatorsFault: closing a lookup table that relays name
// must hold submissions, not fail them.
func TestAClosedTableIsTheOperatorsFault(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{
		"AddressLookupTableNotFound", "InvalidAddressLookupTableOwner", "InvalidAddressLookupTableData", "InvalidAddressLookupTableIndex",
	} {
		if got := ShieldPoolV1().ClassOfTransaction(&TransactionError{Kind: kind}, PoolInstruction); got == ClassBug || got == ClassBadInput {
			t.Errorf("%s is %s, which fails the submission for good: want one that waits", kind, got)
		}
	}
}
