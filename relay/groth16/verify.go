package groth16

import (
	"fmt"
	"sync"

	"github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
)

// Verify checks the proof for the public inputs (32 bytes big-endian each, in
// the circuit's order) and returns the encoding in which A was sent. It fails with
// ErrNonCanonical for a public input that is not below the scalar field's
// modulus (reducing it would let one nullifier be spent under two names), with
// ErrInvalid for a proof that is valid in neither encoding, and with a plain error
// when the number of public inputs is not NPublic.
//
// With L the public inputs' point, the proof (A, B, C) is valid when
//
//	e(A, B) = e(α, β)·e(L, γ)·e(C, δ).
//
// Negating A inverts only the left side. Let f be the Miller loop of (A, B) with A as sent, g the
// Miller loop of (L, γ) and (C, δ) together, and t = e(α, β). The proof is valid when the final
// exponentiation reduces
//
//	f·g⁻¹ to t, if A is plain
//	f·g to t⁻¹, if A is negated.
//
// The two cases need different products: comparing f·g⁻¹ with t⁻¹ would check
// neither. They share both Miller loops. A plain proof costs one final
// exponentiation, and any other proof costs two. No proof passes as both: that
// would need e(A, B)² = 1, which makes A or B the point at infinity.
func (k *Key) Verify(p *Proof, publics [][32]byte) (ProofAEncoding, error) {
	return k.verify(p, publics, [2]ProofAEncoding{Plain, Negated})
}

// verify tries the encodings in the given order. A proof in the first one costs one final
// exponentiation.
func (k *Key) verify(p *Proof, publics [][32]byte, order [2]ProofAEncoding) (ProofAEncoding, error) {
	l, err := k.publicsPoint(publics)
	if err != nil {
		return EncodingUnknown, err
	}
	f, err := bn254.MillerLoop([]bn254.G1Affine{p.a}, []bn254.G2Affine{p.b})
	if err != nil {
		return EncodingUnknown, fmt.Errorf("pair A with B: %w", err)
	}
	g, err := k.millerLoop([]bn254.G1Affine{l, p.c})
	if err != nil {
		return EncodingUnknown, fmt.Errorf("pair the public inputs and C with the key: %w", err)
	}
	for _, encoding := range order {
		if k.holds(encoding, &f, &g) {
			return encoding, nil
		}
	}
	return EncodingUnknown, ErrInvalid
}

// scratch has copies of keys' lines, 50 kB each.
var scratch = sync.Pool{New: func() any { return new(lines) }}

// millerLoop pairs up to three points with γ, δ and β, in that order.
func (k *Key) millerLoop(points []bn254.G1Affine) (bn254.GT, error) {
	copied := scratch.Get().(*lines) //nolint:forcetypeassert // the pool has nothing else
	defer scratch.Put(copied)
	n := copy(copied[:], k.lines[:len(points)]) // MillerLoopFixedQ writes into its argument
	return bn254.MillerLoopFixedQ(points, copied[:n])
}

// holds reports whether a proof with the Miller loops f and g is valid when A has the encoding.
func (k *Key) holds(encoding ProofAEncoding, f, g *bn254.GT) bool {
	if encoding == Negated {
		negated := bn254.FinalExponentiation(f, g)
		return negated.Equal(&k.targetInverse)
	}
	// The conjugate stands in for the inverse: they differ by a norm, which lies
	// in a subfield that the final exponentiation sends to one.
	var gInverse bn254.GT
	gInverse.Conjugate(g)
	plain := bn254.FinalExponentiation(f, &gInverse)
	return plain.Equal(&k.target)
}

// publicsPoint is L = IC[0] + Σ publics[i]·IC[i+1].
func (k *Key) publicsPoint(publics [][32]byte) (l bn254.G1Affine, err error) {
	if err := k.checkPublics(publics); err != nil {
		return l, err
	}
	var sum bn254.G1Jac
	sum.FromAffine(&k.ic[0][0][0])
	for i := range publics {
		k.ic[i+1].addMultiple(&sum, &publics[i])
	}
	l.FromJacobian(&sum)
	return l, nil
}

func (k *Key) checkPublics(publics [][32]byte) error {
	if len(publics) != k.NPublic() {
		return fmt.Errorf("public inputs: the verification key wants %d, received %d", k.NPublic(), len(publics))
	}
	for i := range publics {
		if _, err := fr.BigEndian.Element(&publics[i]); err != nil {
			return fmt.Errorf("public input %d: %w", i, ErrNonCanonical)
		}
	}
	return nil
}
