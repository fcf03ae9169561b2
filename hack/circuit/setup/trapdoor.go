// Package setup makes and stores the Groth16 keys of the development circuit. They come from a
// published seed, so that everybody who builds the circuit has the same verifying key. Anybody can
// forge proofs under it for the same reason, so it is for development only.
package setup

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"

	"github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
	groth16 "github.com/consensys/gnark/backend/groth16/bn254"
	cs "github.com/consensys/gnark/constraint/bn254"
)

const (
	// Seed is published on purpose: anybody can forge any proof with it under the keys.
	Seed = "relaypool: Groth16 set-up from a published seed, for development only, never for value"

	trapdoorDomain = "relaypool/hack/circuit/setup/v1"
)

// Trapdoor has the secrets behind the keys, which a real ceremony destroys.
type Trapdoor struct {
	Tau, Alpha, Beta, Gamma, Delta fr.Element
}

// DeriveTrapdoor returns the five secrets of a seed in the order of the struct: hash_to_field of
// RFC 9380 (expand_message_xmd, SHA-256, 48 bytes an element) with trapdoorDomain as the tag. The
// main module's hack/wallet/simulator derives them the same way to make proofs without proving, and
// refuses a verifying key that they did not make.
func DeriveTrapdoor(seed string) (Trapdoor, error) {
	e, err := fr.Hash([]byte(seed), []byte(trapdoorDomain), 5)
	if err != nil {
		return Trapdoor{}, fmt.Errorf("derive the set-up's secrets: %w", err)
	}
	return Trapdoor{Tau: e[0], Alpha: e[1], Beta: e[2], Gamma: e[3], Delta: e[4]}, nil
}

// generate runs gnark's set-up on the secrets of a trapdoor. gnark draws them from crypto/rand and
// has no parameter for them, so this process' random source returns them first. That depends on
// the order in which gnark draws and on how it reads a field element from random bytes; if either
// changes, the check of the result fails.
func generate(circuit *cs.R1CS, t Trapdoor) (*groth16.ProvingKey, *groth16.VerifyingKey, error) {
	var drawn bytes.Buffer
	for _, e := range []fr.Element{t.Tau, t.Alpha, t.Beta, t.Gamma, t.Delta} {
		for _, limb := range e {
			drawn.Write(binary.LittleEndian.AppendUint64(nil, limb))
		}
	}
	var pk groth16.ProvingKey
	var vk groth16.VerifyingKey
	err := withRandom(io.MultiReader(&drawn, rand.Reader), func() error {
		return groth16.Setup(circuit, &pk, &vk)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("set up the circuit: %w", err)
	}
	if err := check(&pk, &vk, t); err != nil {
		return nil, nil, err
	}
	return &pk, &vk, nil
}

// withRandom is the only place that replaces the process' random source. Nothing else may draw from
// it meanwhile.
func withRandom(r io.Reader, f func() error) error {
	saved := rand.Reader
	rand.Reader = r
	defer func() { rand.Reader = saved }()
	return f()
}

// check recomputes one point for each secret.
func check(pk *groth16.ProvingKey, vk *groth16.VerifyingKey, t Trapdoor) error {
	// The first point of Z is (tau^n − 1)/delta for the domain's n points.
	var z, one fr.Element
	one.SetOne()
	z.Exp(t.Tau, new(big.Int).SetUint64(pk.Domain.Cardinality)).Sub(&z, &one).Div(&z, &t.Delta)
	same := len(pk.G1.Z) > 0 &&
		pk.G1.Z[0] == g1(&z) &&
		vk.G1.Alpha == g1(&t.Alpha) &&
		vk.G2.Beta == g2(&t.Beta) &&
		vk.G2.Gamma == g2(&t.Gamma) &&
		vk.G2.Delta == g2(&t.Delta)
	if !same {
		return errors.New("set up the circuit: the keys are not those of the seed: this version of gnark draws its secrets otherwise, adapt hack/circuit/setup")
	}
	return nil
}

func g1(e *fr.Element) (p bn254.G1Affine) {
	p.ScalarMultiplicationBase(e.BigInt(new(big.Int)))
	return p
}

func g2(e *fr.Element) (p bn254.G2Affine) {
	p.ScalarMultiplicationBase(e.BigInt(new(big.Int)))
	return p
}
