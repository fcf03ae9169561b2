package groth16

import "github.com/consensys/gnark-crypto/ecc/bn254"

// checkG1 refuses points that are not usable in G1. The curve has cofactor 1, so a
// point on it is in the subgroup.
func checkG1(p *bn254.G1Affine) error {
	if p.IsInfinity() {
		return ErrInfinity
	}
	if !p.IsOnCurve() {
		return ErrNotOnCurve
	}
	return nil
}

// checkG2 refuses points that are not usable in G2. gnark-crypto's pairing does not check that a
// point is on the curve or in the subgroup, and the twist has points outside the subgroup.
func checkG2(p *bn254.G2Affine) error {
	if p.IsInfinity() {
		return ErrInfinity
	}
	if !p.IsOnCurve() {
		return ErrNotOnCurve
	}
	if !p.IsInSubGroup() {
		return ErrNotInSubgroup
	}
	return nil
}
