package shieldpool

// Fees are the pool's fees and its smallest deposit, in lamports.
type Fees struct {
	// The fee of a withdrawal or swap is Base plus Numerator/Denominator of the gross amount,
	// rounded down.
	Base, Numerator, Denominator uint64
	// MinDeposit is the smallest deposit that the program accepts.
	MinDeposit uint64
}

// Fee returns what the pool keeps of a withdrawal or swap of gross lamports.
func (f Fees) Fee(gross uint64) uint64 {
	// gross/D·N + (gross mod D)·N/D is ⌊gross·N/D⌋ without overflow.
	return f.Base + gross/f.Denominator*f.Numerator + gross%f.Denominator*f.Numerator/f.Denominator
}

// Net returns what remains of gross lamports for the recipient; ok is false when the fee
// leaves nothing.
func (f Fees) Net(gross uint64) (net uint64, ok bool) {
	fee := f.Fee(gross)
	if fee >= gross {
		return 0, false
	}
	return gross - fee, true
}
