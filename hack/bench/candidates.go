package main

import (
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
	"github.com/iden3/go-iden3-crypto/poseidon"

	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/merkle"
)

// bulk is the number of leaves of a bulk load.
const bulk = 100_000

// vectors are a verification key with nine public inputs and proofs for it,
// made by snarkjs; the same as relay/groth16's.
//
//go:embed testdata
var vectors embed.FS

func newGroups() ([]group, error) {
	proofs, err := proofGroups()
	if err != nil {
		return nil, err
	}
	hashes, err := hashGroup()
	if err != nil {
		return nil, err
	}
	return append(proofs, hashes, appendGroup(), bulkGroup()), nil
}

// proofGroups compares whole verifications, from the proof's bytes and with
// every check, with the pairings alone that a verifier without precomputation
// needs: no decoding, no checks, no sum over the public inputs.
func proofGroups() ([]group, error) {
	key, proof, publics, err := readVector()
	if err != nil {
		return nil, err
	}
	negated, err := negateA(proof)
	if err != nil {
		return nil, err
	}
	verify := func(proof []byte, want groth16.Sign) func() error {
		return func() error {
			p, err := groth16.ParseProof(proof)
			if err != nil {
				return err
			}
			sign, err := key.Verify(p, publics)
			if err == nil && sign != want {
				err = fmt.Errorf("sign of proof A: want %s, received %s", want, sign)
			}
			return err
		}
	}
	points, twists := fourPairs()
	pair := func() error {
		if ok, err := bn254.PairingCheck(points, twists); err != nil || !ok {
			return errors.Join(errors.New("want pairings with product one"), err)
		}
		return nil
	}
	return []group{
		{
			title: "Groth16 proof with nine public inputs, time per proof, 1 core",
			cores: 1,
			candidates: []candidate{
				{"gnark-crypto, bare PairingCheck of four pairs", serial(pair)},
				{"relaypool, from bytes with every check", serial(verify(proof, groth16.Plain))},
				{"relaypool, the same with A negated", serial(verify(negated, groth16.Negated))},
			},
		},
		{
			title: "Groth16 proof with nine public inputs, time per proof, 2 cores",
			cores: 2,
			candidates: []candidate{
				{"gnark-crypto, bare PairingCheck of four pairs", parallel(pair)},
				{"relaypool, from bytes with every check", parallel(verify(proof, groth16.Plain))},
			},
		},
	}, nil
}

// negateA returns the proof with −A in place of A, as some clients send it.
func negateA(proof []byte) ([]byte, error) {
	var a bn254.G1Affine
	if _, err := a.SetBytes(proof[:bn254.SizeOfG1AffineUncompressed]); err != nil {
		return nil, fmt.Errorf("negate the vector's point A: %w", err)
	}
	a.Neg(&a)
	b := a.RawBytes()
	return append(b[:], proof[len(b):]...), nil
}

// readVector reads the key and its third proof, the withdrawal.
func readVector() (key *groth16.Key, proof []byte, publics [][32]byte, err error) {
	text, err := vectors.ReadFile("testdata/verification_key.json")
	if err != nil {
		return nil, nil, nil, fmt.Errorf("read vector: %w", err)
	}
	if key, err = groth16.ParseKey(text); err != nil {
		return nil, nil, nil, fmt.Errorf("read vector: %w", err)
	}
	if text, err = vectors.ReadFile("testdata/snarkjs_proofs.json"); err != nil {
		return nil, nil, nil, fmt.Errorf("read vector: %w", err)
	}
	var entries []struct {
		PublicSignals []string `json:"publicSignals"`
		ProofBytes    string   `json:"proof_bytes_hex"`
	}
	if err = json.Unmarshal(text, &entries); err != nil {
		return nil, nil, nil, fmt.Errorf("read vector: %w", err)
	}
	if len(entries) != 3 {
		return nil, nil, nil, fmt.Errorf("read vector: want three proofs, received %d", len(entries))
	}
	if proof, err = hex.DecodeString(entries[2].ProofBytes); err != nil {
		return nil, nil, nil, fmt.Errorf("read vector: %w", err)
	}
	for _, signal := range entries[2].PublicSignals {
		var e fr.Element
		if _, err = e.SetString(signal); err != nil {
			return nil, nil, nil, fmt.Errorf("read vector: %w", err)
		}
		publics = append(publics, e.Bytes())
	}
	return key, proof, publics, nil
}

// fourPairs are four pairs of points whose pairings multiply to one, as in a
// plain Groth16 check: all different, so that none is cheaper than in earnest.
func fourPairs() ([]bn254.G1Affine, []bn254.G2Affine) {
	// 2·3 + 5·7 + 11·13 − 184·1 = 0, in the exponent.
	left, right := []int64{2, 5, 11, -184}, []int64{3, 7, 13, 1}
	points, twists := make([]bn254.G1Affine, len(left)), make([]bn254.G2Affine, len(right))
	for i := range left {
		points[i].ScalarMultiplicationBase(big.NewInt(left[i]))
		twists[i].ScalarMultiplicationBase(big.NewInt(right[i]))
	}
	return points, twists
}

// hashGroup makes sure that both compute the same function, then compares them.
func hashGroup() (group, error) {
	left, right := fr.NewElement(1), fr.NewElement(2)
	inputs := []*big.Int{left.BigInt(new(big.Int)), right.BigInt(new(big.Int))}
	theirs, err := poseidon.Hash(inputs)
	if err != nil {
		return group{}, fmt.Errorf("hash with go-iden3-crypto: %w", err)
	}
	ours := merkle.Hash2(&left, &right)
	if ours.BigInt(new(big.Int)).Cmp(theirs) != 0 {
		return group{}, errors.New("relaypool and go-iden3-crypto disagree on a Poseidon hash: fix that before measuring")
	}
	return group{
		title: "Poseidon of two inputs, time per hash, 1 core",
		cores: 1,
		candidates: []candidate{
			{"go-iden3-crypto", serial(func() error {
				_, err := poseidon.Hash(inputs)
				return err
			})},
			{"relaypool", serial(func() error {
				left = merkle.Hash2(&left, &right)
				return nil
			})},
		},
	}, nil
}

// appendGroup compares appends that know the root after every leaf, as the
// chain's program does, with appends that leave it for later.
func appendGroup() group {
	leaf := fr.NewElement(1)
	eager, lazy := merkle.NewTree(), merkle.NewTree()
	return group{
		title: "Merkle tree of height 32, time per leaf, 1 core",
		cores: 1,
		candidates: []candidate{
			{"append and take the root", serial(func() error {
				err := eager.Append(&leaf)
				eager.Root()
				return err
			})},
			{"append", serial(func() error { return lazy.Append(&leaf) })},
		},
	}
}

func bulkGroup() group {
	leaf := fr.NewElement(1)
	return group{
		title: "Merkle tree of height 32, bulk load of 100 000 leaves, 1 core",
		cores: 1,
		candidates: []candidate{
			{"append each to an empty tree, take the root once", serial(func() error {
				tree := merkle.NewTree()
				for range bulk {
					if err := tree.Append(&leaf); err != nil {
						return err
					}
				}
				tree.Root()
				return nil
			})},
		},
	}
}

// serial measures the operation one after another.
func serial(operation func() error) func(*testing.B) {
	return func(b *testing.B) {
		for b.Loop() {
			if err := operation(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// parallel measures the throughput of the operation on GOMAXPROCS cores.
func parallel(operation func() error) func(*testing.B) {
	return func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := operation(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
}
