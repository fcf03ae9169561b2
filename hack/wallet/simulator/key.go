package simulator

import (
	"encoding/json"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fp"

	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// key has the points of a verifying key.
type key struct {
	alpha              bn254.G1Affine
	beta, gamma, delta bn254.G2Affine
	ic                 []bn254.G1Affine
}

// parseKey reads the points of snarkjs' verification_key.json. The relay's parser validates
// the file but does not return the points.
func parseKey(text []byte) (*key, error) {
	parsed, err := groth16.ParseKey(text)
	if err != nil {
		return nil, err
	}
	if parsed.NPublic() != shieldpool.SignalCount {
		return nil, fmt.Errorf("verifying key has %d public inputs, expected %d", parsed.NPublic(), shieldpool.SignalCount)
	}
	var raw struct {
		Alpha [3]string    `json:"vk_alpha_1"`
		Beta  [3][2]string `json:"vk_beta_2"`
		Gamma [3][2]string `json:"vk_gamma_2"`
		Delta [3][2]string `json:"vk_delta_2"`
		IC    [][3]string  `json:"IC"`
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, fmt.Errorf("decode verifying key: %w", err)
	}
	var faults []error
	read := func(into *fp.Element, decimal string) {
		if _, err := into.SetString(decimal); err != nil {
			faults = append(faults, err)
		}
	}
	read1 := func(p *bn254.G1Affine, from [3]string) {
		read(&p.X, from[0])
		read(&p.Y, from[1])
	}
	read2 := func(p *bn254.G2Affine, from [3][2]string) {
		read(&p.X.A0, from[0][0])
		read(&p.X.A1, from[0][1])
		read(&p.Y.A0, from[1][0])
		read(&p.Y.A1, from[1][1])
	}
	k := &key{ic: make([]bn254.G1Affine, len(raw.IC))}
	read1(&k.alpha, raw.Alpha)
	read2(&k.beta, raw.Beta)
	read2(&k.gamma, raw.Gamma)
	read2(&k.delta, raw.Delta)
	for i := range k.ic {
		read1(&k.ic[i], raw.IC[i])
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("decode verifying key: %w", faults[0])
	}
	return k, nil
}
