package shieldpool

// SignatureFee is the network's fee for one signature, in lamports.
const SignatureFee = 5000

// BaseFee is what the network takes for a transaction with one signature, whatever price the
// transaction offers. The zero value stands for SignatureFee.
type BaseFee struct {
	// Fixed is in lamports. PerMillion is in lamports for each million of compute units that the
	// transaction requests; 0 today (SIMD-0553 may change it).
	Fixed, PerMillion uint64
}

// Of returns the base fee of a transaction that requests limit compute units, in lamports, rounded
// up.
func (f BaseFee) Of(limit uint32) uint64 {
	if f == (BaseFee{}) {
		return SignatureFee
	}
	return f.Fixed + (f.PerMillion*uint64(limit)+999_999)/1_000_000
}

// Fee returns the network's fee, priority fee included, in lamports.
func (c Compute) Fee() uint64 { return c.Base.Of(c.Limit) + c.PriorityFee() }
