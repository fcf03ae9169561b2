// Package groth16 verifies Groth16 proofs over BN254 (alt_bn128) against a verification key
// that snarkjs wrote. It is pure: it reads no file, keeps no state between calls and logs
// nothing.
//
// Byte layout of points, for proofs and for the key's hash: coordinates are 32 bytes
// big-endian; G1 is x‖y, G2 is x.c1‖x.c0‖y.c1‖y.c0 (the imaginary part first), as Solana's
// alt_bn128 syscalls expect them (EIP-197).
//
// Every check is at least as strict as the syscalls', so that accepted bytes mean the same on the
// chain. This package refuses two encodings that the syscalls accept: a point of all zeros, which
// stands for infinity, and a y whose top two bits are set (arkworks' format uses these bits as
// flags).
package groth16

import (
	"errors"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bn254/fp"
)

// These are the reasons for refusing proofs, public inputs and keys; test with errors.Is.
// Errors that wrap one of them name the place (a point of the proof, a member of the key),
// never a value.
var (
	// ErrLength reports a proof that is not ProofSize bytes long.
	ErrLength = errors.New("wrong length")
	// ErrNonCanonical reports a coordinate or public input that is not below its modulus.
	ErrNonCanonical = errors.New("not canonical: the value is not below the field's modulus")
	// ErrInfinity reports the point at infinity, which no honest prover or set-up produces. It
	// would remove a pairing from the equation.
	ErrInfinity = errors.New("point at infinity")
	// ErrNotOnCurve reports a pair of coordinates that does not satisfy the curve's equation.
	ErrNotOnCurve = errors.New("not on the curve")
	// ErrNotInSubgroup reports a G2 point on the curve but outside the subgroup of prime order,
	// where a pairing proves nothing.
	ErrNotInSubgroup = errors.New("not in the prime-order subgroup")
	// ErrInvalid reports a well-formed proof that does not hold for the public inputs under the
	// key, with A in either encoding.
	ErrInvalid = errors.New("proof does not hold for these public inputs under this verification key")
)

// ProofAEncoding reports whether a client sent the point A of its proof as the prover made it, or
// negated. The on-chain verifier checks that a product of four pairings equals one, so it needs
// the negated A. Some clients negate A and others do not.
type ProofAEncoding uint8

// EncodingUnknown, the zero value, is never that of a verified proof.
const (
	EncodingUnknown ProofAEncoding = iota
	// Plain is A as circom-style provers produce it.
	Plain
	// Negated is −A.
	Negated
)

// String returns "plain", "negated" or, for any other value, "unknown".
func (s ProofAEncoding) String() string {
	switch s {
	case Plain:
		return "plain"
	case Negated:
		return "negated"
	default:
		return "unknown"
	}
}

// ParseProofAEncoding is the inverse of String for the two encodings that a proof can have.
func ParseProofAEncoding(s string) (ProofAEncoding, error) {
	switch s {
	case "plain":
		return Plain, nil
	case "negated":
		return Negated, nil
	default:
		return EncodingUnknown, errors.New(`encoding of proof A: want "plain" or "negated"`)
	}
}

// decodeCoordinate reads one canonical big-endian coordinate.
func decodeCoordinate(b []byte) (fp.Element, error) {
	e, err := fp.BigEndian.Element((*[fp.Bytes]byte)(b))
	if err != nil {
		return fp.Element{}, ErrNonCanonical
	}
	return e, nil
}

// at adds the place of a fault to its error.
func at(place string, err error) error {
	return fmt.Errorf("%s: %w", place, err)
}
