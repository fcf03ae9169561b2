package simulator

import "github.com/consensys/gnark-crypto/ecc/bn254"

const (
	windows = 32  // base-256 digits of a scalar below 2^254
	digits  = 255 // values of a digit other than zero
)

// table has the multiples 1·256^w·P to 255·256^w·P of a fixed point P for each window w.
// With the table, any multiple of P takes at most 32 additions. The table takes 510 KiB.
type table [windows][digits]bn254.G1Affine

// newTable computes the multiples of p, which must not be the point at infinity.
func newTable(p *bn254.G1Affine) *table {
	multiples := make([]bn254.G1Jac, windows*digits)
	base := *p
	for w := range windows {
		row := multiples[w*digits : (w+1)*digits]
		row[0].FromAffine(&base)
		for i := 1; i < digits; i++ {
			row[i].Set(&row[i-1]).AddMixed(&base)
		}
		var next bn254.G1Jac
		next.Set(&row[digits-1]).AddMixed(&base)
		base.FromJacobian(&next)
	}
	// One batch converts all points with a single field inversion.
	affine := bn254.BatchJacobianToAffineG1(multiples)
	var t table
	for w := range t {
		copy(t[w][:], affine[w*digits:])
	}
	return &t
}

// addMultiple adds scalar·P to sum. The scalar is big-endian.
func (t *table) addMultiple(sum *bn254.G1Jac, scalar *[32]byte) {
	for w := range t {
		if digit := scalar[windows-1-w]; digit > 0 {
			sum.AddMixed(&t[w][digit-1])
		}
	}
}
