package shieldpool

// TransactCost is the cost, in lamports, of a call with two nullifiers at HighestRent, without a
// priority fee.
const TransactCost = 2*RentExempt + SignatureFee

// NewAccounts counts the accounts that a transaction creates and that its payer pays for.
type NewAccounts struct {
	// Nullifiers have no data; their rent is never returned.
	Nullifiers uint64
	// SwapStates return their rent to the fee payer when the swap is executed, and to the
	// recipient when it is refunded.
	SwapStates    uint64
	TokenAccounts uint64
}

// Rent is what the accounts cost at a rate, in lamports.
func (n NewAccounts) Rent(r Rent) uint64 {
	return n.Nullifiers*r.Minimum(0) + n.SwapStates*r.Minimum(SwapStateLength) + n.TokenAccounts*r.Minimum(TokenAccountLength)
}

// SecondLegAccounts are the accounts that the second leg of a swap creates if all of them are
// missing.
func SecondLegAccounts() NewAccounts { return NewAccounts{TokenAccounts: 3} }

// NewAccounts are the accounts that the call creates.
func (c *Call) NewAccounts() (n NewAccounts) {
	for i := range c.Inputs.Nullifiers {
		if c.Inputs.HasNullifier(i) {
			n.Nullifiers++
		}
	}
	if c.Swap != nil {
		n.SwapStates++
	}
	return n
}
