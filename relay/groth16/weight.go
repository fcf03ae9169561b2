package groth16

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fp"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
)

// weight is the scalar a + λ·b, where λ is a cube root of one: λ²+λ+1 = 0 mod r. G1 has an
// endomorphism φ that multiplies by λ for the price of one field multiplication, so that a multiple
// by a weight takes 64 doublings instead of 128.
//
// Different pairs (a, b) are different scalars. If two of them were equal, the differences u of the
// a and v of the b would satisfy u = −λ·v mod r, so u²−u·v+v² = v²·(λ²+λ+1) = 0 mod r. But
// u²−u·v+v² lies above 0 and below 2^130, and r is above 2^253.
type weight struct{ a, b uint64 }

var (
	lambda = mustParse[fr.Element]("4407920970296243842393367215006156084916469457145843978461")
	omega  = mustParse[fp.Element]("2203960485148121921418603742825762020974279258880205651966") // φ(x, y) = (ω·x, y)
)

func mustParse[E any, P interface {
	*E
	SetString(decimal string) (P, error)
}](decimal string) (e E) {
	if _, err := P(&e).SetString(decimal); err != nil {
		panic(err)
	}
	return e
}

// randomWeights reads n independent weights, 16 bytes each.
func randomWeights(random io.Reader, n int) ([]weight, error) {
	b := make([]byte, 16*n)
	if _, err := io.ReadFull(random, b); err != nil {
		return nil, fmt.Errorf("read random weights: %w", err)
	}
	weights := make([]weight, n)
	for i := range weights {
		weights[i] = weight{binary.LittleEndian.Uint64(b[16*i:]), binary.LittleEndian.Uint64(b[16*i+8:])}
	}
	return weights, nil
}

// scalar is the weight as an element of the scalar field.
func (w weight) scalar() fr.Element {
	a, b := fr.NewElement(w.a), fr.NewElement(w.b)
	b.Mul(&b, &lambda)
	return *a.Add(&a, &b)
}

// weightedSum is Σ weights[i]·points[i], for points of which none is at infinity. The sum shares
// the doublings of its terms.
func weightedSum(points []bn254.G1Affine, weights []weight) (sum bn254.G1Jac) {
	multiples := make([][4]bn254.G1Affine, len(points)) // 0, P, φ(P), P+φ(P)
	for i := range points {
		p := &points[i]
		m := &multiples[i]
		m[1] = *p
		m[2].X.Mul(&p.X, &omega)
		m[2].Y = p.Y
		// P + φ(P) = −φ²(P), because 1 + λ + λ² = 0.
		m[3].X.Mul(&m[2].X, &omega)
		m[3].Y.Neg(&p.Y)
	}
	for bit := 63; bit >= 0; bit-- {
		sum.DoubleAssign()
		for i, w := range weights {
			if digit := w.a>>bit&1 | w.b>>bit&1<<1; digit != 0 {
				sum.AddMixed(&multiples[i][digit])
			}
		}
	}
	return sum
}
