package groth16

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"

	"github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fp"
)

// maxPublics bounds the memory of a key: a public input needs a table of 256 KiB. The pool's
// circuit has nine public inputs.
const maxPublics = 64

// Key is a verification key, with precomputed values for all that does not depend on the proof. It
// is immutable and safe for concurrent use. A key with nine public inputs takes 3 MB.
type Key struct {
	target        bn254.GT // e(α, β)
	targetInverse bn254.GT
	lines         lines    // of γ, δ and β
	ic            []*table // of IC
	alpha         *table
	hash          [sha256.Size]byte
}

// lines are the precomputed Miller loop lines of three fixed G2 points.
type lines [3][2][len(bn254.LoopCounter)]bn254.LineEvaluationAff

// NPublic is the number of public inputs that the key's circuit has.
func (k *Key) NPublic() int { return len(k.ic) - 1 }

// Hash identifies the key independently of the form of its JSON: the sha256 of
// α‖β‖γ‖δ‖IC[0]‖…‖IC[NPublic] in the package's byte layout.
func (k *Key) Hash() [sha256.Size]byte { return k.hash }

// snarkjsKey is the part of snarkjs' verification_key.json that verification needs. It
// omits vk_alphabeta_12, which follows from alpha and beta.
type snarkjsKey struct {
	Protocol string     `json:"protocol"`
	Curve    string     `json:"curve"`
	NPublic  *int       `json:"nPublic"`
	Alpha    []string   `json:"vk_alpha_1"`
	Beta     [][]string `json:"vk_beta_2"`
	Gamma    [][]string `json:"vk_gamma_2"`
	Delta    [][]string `json:"vk_delta_2"`
	IC       [][]string `json:"IC"`
}

// points are the key's points, checked.
type points struct {
	alpha              bn254.G1Affine
	beta, gamma, delta bn254.G2Affine
	ic                 []bn254.G1Affine
}

// ParseKey reads the verification_key.json of snarkjs 0.7 and precomputes the key, which
// takes about 20 ms. Its errors name the JSON member at fault; errors about points match
// the package's sentinel errors.
//
// ParseKey refuses two kinds of well-formed keys, because proofs under them prove nothing. A key
// with γ = δ is the result of a set-up without its second phase, and lets anybody forge proofs. A
// key with a point at infinity in IC does not bind a proof to the public input of that point.
func ParseKey(snarkjsJSON []byte) (*Key, error) {
	var raw snarkjsKey
	if err := json.Unmarshal(snarkjsJSON, &raw); err != nil {
		return nil, fmt.Errorf("verification key: want the JSON of snarkjs' verification_key.json: %w", err)
	}
	if err := raw.checkHeader(); err != nil {
		return nil, at("verification key", err)
	}
	pts, err := raw.points()
	if err != nil {
		return nil, at("verification key", err)
	}
	return precompute(pts)
}

func (raw *snarkjsKey) checkHeader() error {
	switch {
	case raw.Protocol != "groth16":
		return fmt.Errorf(`protocol: want "groth16", received %q`, raw.Protocol)
	case raw.Curve != "bn128":
		return fmt.Errorf(`curve: want "bn128" (snarkjs' name of BN254), received %q`, raw.Curve)
	case raw.NPublic == nil:
		return errors.New("nPublic: missing")
	case *raw.NPublic < 1 || *raw.NPublic > maxPublics:
		return fmt.Errorf("nPublic: want 1 to %d, received %d", maxPublics, *raw.NPublic)
	case len(raw.IC) != *raw.NPublic+1:
		return fmt.Errorf("IC: want nPublic+1 = %d points, received %d", *raw.NPublic+1, len(raw.IC))
	}
	return nil
}

func (raw *snarkjsKey) points() (*points, error) {
	p := points{ic: make([]bn254.G1Affine, len(raw.IC))}
	if err := readG1(&p.alpha, raw.Alpha); err != nil {
		return nil, at("vk_alpha_1", err)
	}
	for _, member := range [...]struct {
		name string
		from [][]string
		into *bn254.G2Affine
	}{
		{"vk_beta_2", raw.Beta, &p.beta},
		{"vk_gamma_2", raw.Gamma, &p.gamma},
		{"vk_delta_2", raw.Delta, &p.delta},
	} {
		if err := readG2(member.into, member.from); err != nil {
			return nil, at(member.name, err)
		}
	}
	for i := range raw.IC {
		if err := readG1(&p.ic[i], raw.IC[i]); err != nil {
			return nil, at(fmt.Sprintf("IC[%d]", i), err)
		}
	}
	if p.gamma.Equal(&p.delta) {
		return nil, errors.New("vk_delta_2: equals vk_gamma_2, so anybody can forge proofs: finish the circuit's set-up with a phase 2 contribution and export the key again")
	}
	return &p, nil
}

func precompute(p *points) (*Key, error) {
	target, err := bn254.Pair([]bn254.G1Affine{p.alpha}, []bn254.G2Affine{p.beta})
	if err != nil {
		return nil, fmt.Errorf("pair alpha with beta: %w", err)
	}
	k := &Key{
		target: target,
		lines:  lines{bn254.PrecomputeLines(p.gamma), bn254.PrecomputeLines(p.delta), bn254.PrecomputeLines(p.beta)},
		alpha:  newTable(&p.alpha),
		hash:   p.hash(),
	}
	k.targetInverse.Conjugate(&target) // the inverse, in the pairing's target group
	for i := range p.ic {
		k.ic = append(k.ic, newTable(&p.ic[i]))
	}
	return k, nil
}

// hash relies on gnark-crypto's uncompressed form, which equals this package's layout for every
// point except infinity.
func (p *points) hash() (sum [sha256.Size]byte) {
	h := sha256.New()
	writeG1 := func(p *bn254.G1Affine) { b := p.RawBytes(); h.Write(b[:]) }
	writeG2 := func(p *bn254.G2Affine) { b := p.RawBytes(); h.Write(b[:]) }
	writeG1(&p.alpha)
	writeG2(&p.beta)
	writeG2(&p.gamma)
	writeG2(&p.delta)
	for i := range p.ic {
		writeG1(&p.ic[i])
	}
	h.Sum(sum[:0])
	return sum
}

// readG1 reads snarkjs' projective [x, y, "1"].
func readG1(p *bn254.G1Affine, from []string) error {
	if len(from) != 3 || from[2] != "1" {
		return fmt.Errorf(`want a point [x, y, "1"], received %s`, shape(len(from)))
	}
	if err := readCoordinates(from, &p.X, &p.Y); err != nil {
		return err
	}
	return checkG1(p)
}

// readG2 reads snarkjs' projective [[x.c0, x.c1], [y.c0, y.c1], ["1", "0"]]: the real part comes
// first, but in the wire format the imaginary part does.
func readG2(p *bn254.G2Affine, from [][]string) error {
	if len(from) != 3 || len(from[0]) != 2 || len(from[1]) != 2 || len(from[2]) != 2 || from[2][0] != "1" || from[2][1] != "0" {
		return fmt.Errorf(`want a point [[x0, x1], [y0, y1], ["1", "0"]], received %s`, shape(len(from)))
	}
	if err := readCoordinates(from[0], &p.X.A0, &p.X.A1); err != nil {
		return err
	}
	if err := readCoordinates(from[1], &p.Y.A0, &p.Y.A1); err != nil {
		return err
	}
	return checkG2(p)
}

// shape describes a member that does not have the form of a point.
func shape(n int) string {
	switch n {
	case 0:
		return "nothing"
	case 3:
		return "3 elements of another form"
	default:
		return fmt.Sprintf("%d element(s)", n)
	}
}

// maxDigits is the length of the modulus in decimal. Longer text is refused before its
// conversion, because the conversion's time grows with the square of the length.
const maxDigits = 77

// readCoordinates reads one canonical decimal number for each element of into.
func readCoordinates(from []string, into ...*fp.Element) error {
	for i, e := range into {
		if len(from[i]) > maxDigits {
			return fmt.Errorf("coordinate %d of %d: %w", i+1, len(into), ErrNonCanonical)
		}
		n, ok := new(big.Int).SetString(from[i], 10)
		if !ok || n.String() != from[i] {
			return fmt.Errorf("coordinate %d of %d: want a decimal number without sign or leading zeros, received other text of length %d", i+1, len(into), len(from[i]))
		}
		if n.Sign() < 0 || n.Cmp(fp.Modulus()) >= 0 {
			return fmt.Errorf("coordinate %d of %d: %w", i+1, len(into), ErrNonCanonical)
		}
		e.SetBigInt(n)
	}
	return nil
}
