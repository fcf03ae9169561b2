// Package setup makes and stores the Groth16 keys of the development circuit. The keys come from a
// published seed, so that everybody who builds the circuit has the same verifying key. With the
// seed anybody can forge proofs for this key, so it is for development only.
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
	// Seed is published on purpose: with it anybody can forge any proof for the keys.
	Seed = "relaypool: Groth16 set-up from a published seed, for development only, never for value"

	// trapdoorDomain is the domain separation tag of DeriveTrapdoor.
	trapdoorDomain = "relaypool/hack/circuit/setup/v1"
)

// Trapdoor has the secrets of the set-up, from which the keys are computed. A real ceremony
// destroys them.
type Trapdoor struct {
	Tau, Alpha, Beta, Gamma, Delta fr.Element
}

// DeriveTrapdoor derives the five secrets of a seed, in the order of the struct, by hash_to_field
// of RFC 9380 (expand_message_xmd, SHA-256, 48 bytes per element) with trapdoorDomain as the tag.
// The main module's hack/wallet/simulator derives the same secrets to simulate proofs, and refuses
// a verifying key of other secrets.
func DeriveTrapdoor(seed string) (Trapdoor, error) {
	e, err := fr.Hash([]byte(seed), []byte(trapdoorDomain), 5)
	if err != nil {
		return Trapdoor{}, fmt.Errorf("derive the set-up's secrets: %w", err)
	}
	return Trapdoor{Tau: e[0], Alpha: e[1], Beta: e[2], Gamma: e[3], Delta: e[4]}, nil
}

// generate runs gnark's set-up with the secrets of a trapdoor. gnark has no parameter for the
// secrets and draws them from crypto/rand. generate therefore replaces crypto/rand.Reader by a
// reader that returns the secrets first. This depends on the order in which gnark draws and on how
// it reads a field element from random bytes. If either changes, check fails.
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

// withRandom runs f with r in place of crypto/rand.Reader. No other goroutine may use
// crypto/rand.Reader meanwhile.
func withRandom(r io.Reader, f func() error) error {
	saved := rand.Reader
	rand.Reader = r
	defer func() { rand.Reader = saved }()
	return f()
}

// check compares one point of the keys for each secret with the point computed from the secret.
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
		return errors.New("set up the circuit: the keys do not come from the seed: this version of gnark draws its secrets differently, so adapt hack/circuit/setup")
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
