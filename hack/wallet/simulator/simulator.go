// Package simulator simulates proofs of the development circuit. With the secrets of a
// Groth16 set-up, a valid proof for any public inputs takes a fraction of a millisecond
// and needs no witness, even if the inputs are false. The secrets of the development key
// are public, because the key comes from a published seed (hack/circuit/setup).
//
// Load tests use it, because they measure the relay and not the prover: a real proof
// takes half a second on every core. The relay verifies simulated proofs in full, with
// the development key.
package simulator

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"

	"github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// DevelopmentSeed is the same as hack/circuit/setup.Seed. It is published on purpose.
	DevelopmentSeed = "relaypool: Groth16 set-up from a published seed, for development only, never for value"

	// trapdoorDomain is the domain separation tag of the secrets' derivation, as in
	// hack/circuit/setup.
	trapdoorDomain = "relaypool/hack/circuit/setup/v1"
)

// errForeign is the error for a key that does not come from the seed.
var errForeign = errors.New("the verifying key does not belong to the seed: expected hack/circuit/verification_key.json with the seed of hack/circuit/setup")

// Simulator makes proofs for one verifying key. It is immutable and safe for concurrent
// use. It takes 5.5 MB.
type Simulator struct {
	alphaBeta, deltaInverse fr.Element
	// The equation e(A, B) = e(α, β)·e(vk_x, γ)·e(C, δ) gives
	// C = (ab − αβ)/δ·G1 − γ/δ·vk_x. generator has the multiples of G1. inputs[i] has the
	// multiples of −γ/δ·IC[i+1], and constant is −γ/δ·IC[0].
	generator *table
	inputs    [shieldpool.SignalCount]*table
	constant  bn254.G1Affine
}

// New makes the simulator for a key from snarkjs' verification_key.json and the seed of
// the key's set-up. It returns an error when the key does not come from the seed. It takes
// about 50 ms.
func New(verificationKey []byte, seed string) (*Simulator, error) {
	key, err := parseKey(verificationKey)
	if err != nil {
		return nil, err
	}
	// The secrets are tau, alpha, beta, gamma and delta, by hash_to_field of RFC 9380.
	secrets, err := fr.Hash([]byte(seed), []byte(trapdoorDomain), 5)
	if err != nil {
		return nil, fmt.Errorf("derive the set-up's secrets: %w", err)
	}
	alpha, beta, gamma, delta := &secrets[1], &secrets[2], &secrets[3], &secrets[4]
	if g1(alpha) != key.alpha || g2(beta) != key.beta || g2(gamma) != key.gamma || g2(delta) != key.delta {
		return nil, errForeign
	}
	s := new(Simulator)
	s.alphaBeta.Mul(alpha, beta)
	s.deltaInverse.Inverse(delta)
	var factor fr.Element
	factor.Mul(gamma, &s.deltaInverse).Neg(&factor)
	scale := factor.BigInt(new(big.Int))
	s.constant.ScalarMultiplication(&key.ic[0], scale)
	for i := range s.inputs {
		var scaled bn254.G1Affine
		s.inputs[i] = newTable(scaled.ScalarMultiplication(&key.ic[i+1], scale))
	}
	one := fr.One()
	generator := g1(&one)
	s.generator = newTable(&generator)
	return s, nil
}

// Prove makes a proof for public inputs in the form of POST /transact. The same inputs and
// nonce give the same bytes. Another nonce gives other bytes.
func (s *Simulator) Prove(in *shieldpool.PublicInputs, nonce uint64) [shieldpool.ProofLength]byte {
	signals := in.Signals()
	a, b := blinding(in, nonce, 'a'), blinding(in, nonce, 'b')
	var c fr.Element
	c.Mul(&a, &b).Sub(&c, &s.alphaBeta).Mul(&c, &s.deltaInverse)

	var sums [2]bn254.G1Jac // A and C
	scalar := a.Bytes()
	s.generator.addMultiple(&sums[0], &scalar)
	sums[1].FromAffine(&s.constant)
	scalar = c.Bytes()
	s.generator.addMultiple(&sums[1], &scalar)
	for i := range signals {
		s.inputs[i].addMultiple(&sums[1], &signals[i])
	}
	points := bn254.BatchJacobianToAffineG1(sums[:])
	pointB := g2(&b)

	var proof [shieldpool.ProofLength]byte
	rawA, rawB, rawC := points[0].RawBytes(), pointB.RawBytes(), points[1].RawBytes()
	copy(proof[:64], rawA[:])
	copy(proof[64:192], rawB[:])
	copy(proof[192:], rawC[:])
	return proof
}

// blinding derives a free scalar of the proof: a for 'a', and b for 'b'. It is never zero
// in practice, because it is a hash.
func blinding(in *shieldpool.PublicInputs, nonce uint64, which byte) (e fr.Element) {
	h := sha256.New()
	h.Write(in.Bytes())
	h.Write(binary.LittleEndian.AppendUint64([]byte{which}, nonce))
	e.SetBytes(h.Sum(nil))
	return e
}

func g1(e *fr.Element) (p bn254.G1Affine) {
	p.ScalarMultiplicationBase(e.BigInt(new(big.Int)))
	return p
}

func g2(e *fr.Element) (p bn254.G2Affine) {
	p.ScalarMultiplicationBase(e.BigInt(new(big.Int)))
	return p
}
