package setup

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bn254"
	groth16 "github.com/consensys/gnark/backend/groth16/bn254"
)

type (
	point1 [3]string
	point2 [3][2]string
)

// verificationKey is snarkjs' verification_key.json without vk_alphabeta_12, which follows from
// alpha and beta.
type verificationKey struct {
	Protocol string   `json:"protocol"`
	Curve    string   `json:"curve"`
	NPublic  int      `json:"nPublic"`
	Alpha    point1   `json:"vk_alpha_1"`
	Beta     point2   `json:"vk_beta_2"`
	Gamma    point2   `json:"vk_gamma_2"`
	Delta    point2   `json:"vk_delta_2"`
	IC       []point1 `json:"IC"`
}

// SnarkJS returns the verifying key in snarkjs' JSON: coordinates are decimal and projective with
// z = 1, and the real part of a G2 coordinate comes first.
func SnarkJS(vk *groth16.VerifyingKey) ([]byte, error) {
	key := verificationKey{
		Protocol: "groth16",
		Curve:    "bn128",
		NPublic:  len(vk.G1.K) - 1,
		Alpha:    projective1(&vk.G1.Alpha),
		Beta:     projective2(&vk.G2.Beta),
		Gamma:    projective2(&vk.G2.Gamma),
		Delta:    projective2(&vk.G2.Delta),
	}
	for i := range vk.G1.K {
		key.IC = append(key.IC, projective1(&vk.G1.K[i]))
	}
	text, err := json.MarshalIndent(key, "", " ")
	if err != nil {
		return nil, fmt.Errorf("encode verifying key: %w", err)
	}
	return append(text, '\n'), nil
}

func projective1(p *bn254.G1Affine) point1 {
	return point1{p.X.String(), p.Y.String(), "1"}
}

func projective2(p *bn254.G2Affine) point2 {
	return point2{
		{p.X.A0.String(), p.X.A1.String()},
		{p.Y.A0.String(), p.Y.A1.String()},
		{"1", "0"},
	}
}

// Hash is the sha256 of alpha, beta, gamma, delta and the points IC, uncompressed and big-endian as
// in a proof. A relay identifies the development key by this hash.
func Hash(vk *groth16.VerifyingKey) [sha256.Size]byte {
	h := sha256.New()
	add1 := func(p *bn254.G1Affine) { b := p.RawBytes(); h.Write(b[:]) }
	add2 := func(p *bn254.G2Affine) { b := p.RawBytes(); h.Write(b[:]) }
	add1(&vk.G1.Alpha)
	add2(&vk.G2.Beta)
	add2(&vk.G2.Gamma)
	add2(&vk.G2.Delta)
	for i := range vk.G1.K {
		add1(&vk.G1.K[i])
	}
	return [sha256.Size]byte(h.Sum(nil))
}
