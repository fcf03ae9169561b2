package groth16

import "github.com/consensys/gnark-crypto/ecc/bn254"

const (
	windows   = 32  // base-256 digits of a scalar below 2^254
	halfDigit = 128 // digits are taken in −127..128, so half of the multiples suffice
)

// table holds, for one fixed point P and each window w, the multiples
// 1·256^w·P to 128·256^w·P. With a table, computing a multiple of P takes at
// most 32 additions and no doubling. A table takes 256 KiB.
type table [windows][halfDigit]bn254.G1Affine

// newTable computes the multiples of p, which is not the point at infinity.
func newTable(p *bn254.G1Affine) *table {
	multiples := make([]bn254.G1Jac, windows*halfDigit)
	base := *p
	for w := range windows {
		row := multiples[w*halfDigit : (w+1)*halfDigit]
		row[0].FromAffine(&base)
		for i := 1; i < halfDigit; i++ {
			row[i].Set(&row[i-1]).AddMixed(&base)
		}
		var next bn254.G1Jac
		next.Double(&row[halfDigit-1])
		base.FromJacobian(&next)
	}
	// One batch for all multiples: each conversion alone would cost a field inversion.
	affine := bn254.BatchJacobianToAffineG1(multiples)
	var t table
	for w := range t {
		copy(t[w][:], affine[w*halfDigit:])
	}
	return &t
}

// addMultiple adds scalar·P to sum. The scalar is big-endian and below 2^254,
// so that the top digit absorbs the last carry. The running time depends on the
// scalar, which is harmless because the scalar is public.
func (t *table) addMultiple(sum *bn254.G1Jac, scalar *[32]byte) {
	carry := 0
	for w := range t {
		digit := int(scalar[windows-1-w]) + carry
		carry = 0
		if digit > halfDigit {
			digit -= 256
			carry = 1
		}
		switch {
		case digit > 0:
			sum.AddMixed(&t[w][digit-1])
		case digit < 0:
			var negative bn254.G1Affine
			negative.Neg(&t[w][-digit-1])
			sum.AddMixed(&negative)
		}
	}
}
