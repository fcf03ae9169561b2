package shieldpool

import "testing"

// TestClosedLookupTableHoldsSubmissions: a closed lookup table must hold submissions, not
// fail them.
func TestClosedLookupTableHoldsSubmissions(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{
		"AddressLookupTableNotFound", "InvalidAddressLookupTableOwner", "InvalidAddressLookupTableData", "InvalidAddressLookupTableIndex",
	} {
		if got := ShieldPoolV1().ClassOfTransaction(&TransactionError{Kind: kind}, PoolInstruction); got == ClassBug || got == ClassBadInput {
			t.Errorf("%s is %s, which fails the submission permanently; want a class that holds it", kind, got)
		}
	}
}
