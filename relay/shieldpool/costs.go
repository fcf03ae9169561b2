package shieldpool

// These are the network's costs, in lamports. Rent is an account's minimum balance: (128 +
// bytes of data) × 3480 lamports × 2 years (Solana, "Account model: rent").
const (
	// RentExempt is the rent-exempt minimum of an account without data, such as a
	// nullifier account. A nullifier's rent is never returned.
	RentExempt = 890_880
	// SwapStateRent is the rent of a swap state. An execution returns it to the fee
	// payer, a refund to the recipient.
	SwapStateRent = 2_011_440
	// TokenAccountRent is the rent of a token account, of 165 bytes.
	TokenAccountRent = 2_039_280
	// SwapUpfrontCost is the largest rent that a swap's second leg takes.
	SwapUpfrontCost = 3 * TokenAccountRent
	// SignatureFee is the network's fee for one signature.
	SignatureFee = 5000
	// TransactCost is the cost of a call with two nullifiers, without a priority fee.
	TransactCost = 2*RentExempt + SignatureFee
)

// Rent returns the rent of the accounts that the call creates, in lamports.
func (c *Call) Rent() (lamports uint64) {
	for i := range c.Inputs.Nullifiers {
		if c.Inputs.HasNullifier(i) {
			lamports += RentExempt
		}
	}
	if c.Swap != nil {
		lamports += SwapStateRent
	}
	return lamports
}
