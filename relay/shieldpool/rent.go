package shieldpool

import (
	"encoding/binary"
	"fmt"
	"math"
)

// RentExempt is the rent-exempt minimum of an account without data at the rent rate HighestRent.
const RentExempt = rentOverhead * uint64(HighestRent)

// Rent is the network's rent rate in lamports a byte. The network changes it only at the start of
// an epoch (SIMD-0194, SIMD-0437). 0 is an unknown rate.
type Rent uint64

// HighestRent was the rate until September 2026. The network may return to it (SIMD-0438).
// Reservations for transactions that have not landed yet assume at least this rate; see Upper.
const HighestRent Rent = 6960

const (
	// rentOverhead is the number of bytes that every account has besides its data.
	rentOverhead = 128
	// rentSysvarLength is the length of the rent sysvar: rate, threshold and burned share.
	rentSysvarLength = 17
	// maxRent is higher than every rate that the network has had.
	maxRent = 100 * HighestRent
)

// Minimum is the minimum balance in lamports of an account with size bytes of data; 0 when
// the rate is unknown.
func (r Rent) Minimum(size uint64) uint64 { return (rentOverhead + size) * uint64(r) }

// Upper is the highest rate that may apply when a transaction that is signed now lands.
func (r Rent) Upper() Rent { return max(r, HighestRent) }

// Known returns the rate, or HighestRent when the rate is unknown.
func (r Rent) Known() Rent {
	if r == 0 {
		return HighestRent
	}
	return r
}

// ParseRent reads the rate from the data of the rent sysvar. The data has a base rate and a
// factor, the exemption threshold. Their product is the rate that applies. The factor was 2
// before SIMD-0194, and is 1 since then.
func ParseRent(data []byte) (Rent, error) {
	if len(data) != rentSysvarLength {
		return 0, fmt.Errorf("rent sysvar has %d bytes, expected %d", len(data), rentSysvarLength)
	}
	threshold := math.Float64frombits(binary.LittleEndian.Uint64(data[8:]))
	rate := float64(binary.LittleEndian.Uint64(data)) * threshold
	if !(rate >= 1 && rate <= float64(maxRent)) || rate != math.Trunc(rate) {
		return 0, fmt.Errorf("rent sysvar has a rate of %g lamports a byte, expected a whole number from 1 to %d", rate, maxRent)
	}
	return Rent(rate), nil
}
