// Package trapdoor makes Groth16 keys with known secrets (the trapdoor of the
// set-up). With the secrets it makes valid proofs for any public inputs, true or
// false, in a fraction of a millisecond.
//
// Tests and load need thousands of proofs a second that the real verifier accepts,
// also for statements that the circuit excludes. The verification is the real one;
// only the key is insecure. Package hack/circuit makes proofs of a real circuit.
package trapdoor

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/big"

	"github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fp"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
)

// Key is a verifying key with the secrets that made it. It is immutable and
// safe for concurrent use.
type Key struct {
	alpha, beta, gamma, delta fr.Element
	// ic are the discrete logarithms of the key's points IC: one for the constant
	// term, then one for each public input.
	ic []fr.Element
}

// New derives a key from a seed, for a circuit with publics public inputs.
func New(seed string, publics int) *Key {
	k := &Key{ic: make([]fr.Element, publics+1)}
	secrets := []*fr.Element{&k.alpha, &k.beta, &k.gamma, &k.delta}
	for i := range k.ic {
		secrets = append(secrets, &k.ic[i])
	}
	for i, secret := range secrets {
		*secret = scalar([]byte(seed), uint64(i))
	}
	return k
}

// scalar derives a field element from a label and a number.
func scalar(label []byte, n uint64) (e fr.Element) {
	sum := sha256.Sum256(binary.LittleEndian.AppendUint64(label, n))
	e.SetBytes(sum[:])
	return e
}

// VerifyingKey returns the key in the JSON of snarkjs' verification_key.json.
func (k *Key) VerifyingKey() ([]byte, error) {
	ic := make([][3]string, len(k.ic))
	for i := range k.ic {
		ic[i] = g1JSON(g1(&k.ic[i]))
	}
	raw, err := json.Marshal(map[string]any{
		"protocol":   "groth16",
		"curve":      "bn128",
		"nPublic":    len(k.ic) - 1,
		"vk_alpha_1": g1JSON(g1(&k.alpha)),
		"vk_beta_2":  g2JSON(g2(&k.beta)),
		"vk_gamma_2": g2JSON(g2(&k.gamma)),
		"vk_delta_2": g2JSON(g2(&k.delta)),
		"IC":         ic,
	})
	if err != nil {
		return nil, fmt.Errorf("encode verifying key: %w", err)
	}
	return raw, nil
}

// Prove makes a proof of 256 bytes for public inputs of 32 big-endian bytes each. For
// the same inputs, another nonce gives another proof. The error means that the number
// of inputs does not match the key.
func (k *Key) Prove(publics [][32]byte, nonce uint64) ([]byte, error) {
	if len(publics) != len(k.ic)-1 {
		return nil, fmt.Errorf("prove: got %d public inputs, want %d", len(publics), len(k.ic)-1)
	}
	// A proof is valid if e(A, B) = e(α, β)·e(L, γ)·e(C, δ). In discrete logarithms
	// this is ab = αβ + lγ + cδ. All secrets are known, so c follows from any a and b.
	a, b := scalar([]byte("a"), nonce), scalar([]byte("b"), nonce)
	l := k.ic[0]
	var c, product fr.Element
	for i := range publics {
		product.SetBytes(publics[i][:])
		product.Mul(&product, &k.ic[i+1])
		l.Add(&l, &product)
	}
	c.Mul(&a, &b)
	c.Sub(&c, product.Mul(&k.alpha, &k.beta))
	c.Sub(&c, product.Mul(&l, &k.gamma))
	c.Div(&c, &k.delta)

	pointA, pointB, pointC := g1(&a), g2(&b), g1(&c)
	proof := make([]byte, 0, 256)
	for _, part := range [][]byte{rawG1(pointA), rawG2(pointB), rawG1(pointC)} {
		proof = append(proof, part...)
	}
	return proof, nil
}

func g1(s *fr.Element) *bn254.G1Affine {
	return new(bn254.G1Affine).ScalarMultiplicationBase(s.BigInt(new(big.Int)))
}

func g2(s *fr.Element) *bn254.G2Affine {
	return new(bn254.G2Affine).ScalarMultiplicationBase(s.BigInt(new(big.Int)))
}

func rawG1(p *bn254.G1Affine) []byte { raw := p.RawBytes(); return raw[:] }

// rawG2 puts the imaginary parts first, as the bytes of a proof have them.
func rawG2(p *bn254.G2Affine) []byte { raw := p.RawBytes(); return raw[:] }

func decimal(e *fp.Element) string { return e.Text(10) }

func g1JSON(p *bn254.G1Affine) [3]string {
	return [3]string{decimal(&p.X), decimal(&p.Y), "1"}
}

func g2JSON(p *bn254.G2Affine) [3][2]string {
	return [3][2]string{
		{decimal(&p.X.A0), decimal(&p.X.A1)},
		{decimal(&p.Y.A0), decimal(&p.Y.A1)},
		{"1", "0"},
	}
}
