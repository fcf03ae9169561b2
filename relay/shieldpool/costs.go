package shieldpool

// What the network takes, in lamports. Rent is what an account has to hold to exist:
// (128 + bytes of data) × 3480 lamports × 2 years (Solana, "Account model: rent").
const (
	// RentExempt is the least that an account without data may hold, unless it holds
	// nothing. A nullifier's account has no data; its rent never comes back.
	RentExempt = 890_880
	// SwapStateRent is a swap state's. An execution gives it to the fee payer, a refund
	// to the recipient.
	SwapStateRent = 2_011_440
	// TokenAccountRent is a token account's, of 165 bytes.
	TokenAccountRent = 2_039_280
	// SwapUpfrontCost is the most that a swap's second leg takes for rent.
	SwapUpfrontCost = 3 * TokenAccountRent
	// SignatureFee is the network's fee for one signature.
	SignatureFee = 5000
	// TransactCost is that of a call with two nullifiers, without a priority fee.
	TransactCost = 2*RentExempt + SignatureFee
)

// Rent is what the accounts cost that the call makes, in lamports.
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
