package groth16

import (
	"encoding/hex"
	"encoding/json"
	"math/big"
	"os"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
)

// vector is one proof by snarkjs, in the relay's bytes.
type vector struct {
	proof   []byte
	publics [][32]byte
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func snarkjsVectors(t testing.TB) []vector {
	t.Helper()
	var raw []struct {
		PublicSignals []string `json:"publicSignals"`
		ProofBytes    string   `json:"proof_bytes_hex"`
	}
	if err := json.Unmarshal(readFile(t, "snarkjs_proofs.json"), &raw); err != nil {
		t.Fatal(err)
	}
	if len(raw) != 3 {
		t.Fatalf("%d vectors, want 3", len(raw))
	}
	vectors := make([]vector, len(raw))
	for i, r := range raw {
		proof, err := hex.DecodeString(r.ProofBytes)
		if err != nil {
			t.Fatal(err)
		}
		vectors[i].proof = proof
		for _, signal := range r.PublicSignals {
			n, ok := new(big.Int).SetString(signal, 10)
			if !ok {
				t.Fatalf("public signal %q is no number", signal)
			}
			vectors[i].publics = append(vectors[i].publics, [32]byte(n.FillBytes(make([]byte, 32))))
		}
	}
	return vectors
}

func snarkjsKeyOf(t testing.TB) *Key {
	t.Helper()
	k, err := ParseKey(readFile(t, "verification_key.json"))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func mustParseProof(t testing.TB, b []byte) *Proof {
	t.Helper()
	p, err := ParseProof(b)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// negateG1 returns the proof's bytes with the point at the offset negated.
func negateG1(t testing.TB, proof []byte, offset int) []byte {
	t.Helper()
	var p bn254.G1Affine
	if _, err := p.SetBytes(proof[offset : offset+64]); err != nil {
		t.Fatal(err)
	}
	p.Neg(&p)
	b := p.RawBytes()
	return splice(proof, offset, b[:])
}

// negateB returns the proof's bytes with −B.
func negateB(t testing.TB, proof []byte) []byte {
	t.Helper()
	var p bn254.G2Affine
	if _, err := p.SetBytes(proof[64:192]); err != nil {
		t.Fatal(err)
	}
	p.Neg(&p)
	b := p.RawBytes()
	return splice(proof, 64, b[:])
}

// splice returns a copy of b with the part at the offset replaced.
func splice(b []byte, offset int, part []byte) []byte {
	out := append([]byte(nil), b...)
	copy(out[offset:], part)
	return out
}

// trapdoor is a key whose discrete logarithms are known, so that tests can
// build proofs for, and against, every equation.
type trapdoor struct {
	alpha, beta, gamma, delta fr.Element
	ic                        []fr.Element
}

func g1(e *fr.Element) (p bn254.G1Affine) {
	p.ScalarMultiplicationBase(e.BigInt(new(big.Int)))
	return p
}

func g2(e *fr.Element) (p bn254.G2Affine) {
	p.ScalarMultiplicationBase(e.BigInt(new(big.Int)))
	return p
}

func newTrapdoor(nPublic int) trapdoor {
	d := trapdoor{ic: make([]fr.Element, nPublic+1)}
	d.alpha.SetUint64(3)
	d.beta.SetUint64(5)
	d.gamma.SetUint64(7)
	d.delta.SetUint64(11)
	for i := range d.ic {
		d.ic[i].SetUint64(uint64(13 + i))
	}
	return d
}

// json writes the key as snarkjs does.
func (d trapdoor) json(t testing.TB) []byte {
	t.Helper()
	writeG1 := func(e *fr.Element) []string {
		p := g1(e)
		return []string{p.X.String(), p.Y.String(), "1"}
	}
	writeG2 := func(e *fr.Element) [][]string {
		p := g2(e)
		return [][]string{{p.X.A0.String(), p.X.A1.String()}, {p.Y.A0.String(), p.Y.A1.String()}, {"1", "0"}}
	}
	n := len(d.ic) - 1
	raw := snarkjsKey{
		Protocol: "groth16", Curve: "bn128", NPublic: &n,
		Alpha: writeG1(&d.alpha), Beta: writeG2(&d.beta), Gamma: writeG2(&d.gamma), Delta: writeG2(&d.delta),
	}
	for i := range d.ic {
		raw.IC = append(raw.IC, writeG1(&d.ic[i]))
	}
	b, err := json.Marshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// prove returns a proof with e(A, B) = e(L, γ)^sumSign·e(C, δ)·e(α, β)^targetSign,
// which is a valid one, with A plain, when both are +1.
func (d trapdoor) prove(publics []fr.Element, sumSign, targetSign int64) *Proof {
	a, b := fr.NewElement(17), fr.NewElement(19)
	sum := d.ic[0]
	for i := range publics {
		var term fr.Element
		sum.Add(&sum, term.Mul(&publics[i], &d.ic[i+1]))
	}
	var sumFactor, targetFactor, c, term fr.Element
	sumFactor.SetInt64(sumSign)
	targetFactor.SetInt64(targetSign)
	c.Mul(&a, &b)
	c.Sub(&c, term.Mul(&sum, &d.gamma).Mul(&term, &sumFactor))
	c.Sub(&c, term.Mul(&d.alpha, &d.beta).Mul(&term, &targetFactor))
	c.Div(&c, &d.delta)
	return &Proof{a: g1(&a), b: g2(&b), c: g1(&c)}
}
