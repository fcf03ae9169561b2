package groth16

import (
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fp"
)

// ProofSize is the length of a proof in bytes: A (64), B (128), C (64).
const ProofSize = 256

// Proof is a well-formed proof: three points, none at infinity, each in its
// group. Only ParseProof makes a usable one.
type Proof struct {
	a, c bn254.G1Affine
	b    bn254.G2Affine
}

// ParseProof decodes exactly ProofSize bytes, A‖B‖C in the package's layout.
// It fails with ErrLength, ErrNonCanonical, ErrInfinity, ErrNotOnCurve or
// ErrNotInSubgroup. The error's text names the point, and the coordinate if one is at fault.
func ParseProof(b []byte) (*Proof, error) {
	if len(b) != ProofSize {
		return nil, fmt.Errorf("proof: %w: want %d bytes, received %d", ErrLength, ProofSize, len(b))
	}
	var p Proof
	for i, coordinate := range [...]struct {
		name string
		into *fp.Element
	}{
		{"A.x", &p.a.X}, {"A.y", &p.a.Y},
		{"B.x.c1", &p.b.X.A1}, {"B.x.c0", &p.b.X.A0}, {"B.y.c1", &p.b.Y.A1}, {"B.y.c0", &p.b.Y.A0},
		{"C.x", &p.c.X}, {"C.y", &p.c.Y},
	} {
		e, err := decodeCoordinate(b[i*fp.Bytes : (i+1)*fp.Bytes])
		if err != nil {
			return nil, at("proof point "+coordinate.name, err)
		}
		*coordinate.into = e
	}
	if err := checkG1(&p.a); err != nil {
		return nil, at("proof point A", err)
	}
	if err := checkG1(&p.c); err != nil {
		return nil, at("proof point C", err)
	}
	if err := checkG2(&p.b); err != nil { // last, because it costs the most
		return nil, at("proof point B", err)
	}
	return &p, nil
}
