package groth16

import (
	"math/big"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bn254"
)

// BenchmarkProof compares complete verifications (decoding, all checks, the sum over the
// public inputs) with the bare pairings of a verifier without precomputation. With −A a
// second final exponentiation is needed.
func BenchmarkProof(b *testing.B) {
	key, v := snarkjsKeyOf(b), snarkjsVectors(b)[2]
	negated := v
	negated.proof = negateG1(b, v.proof, 0)
	points, twists := fourPairs()
	b.Run("way=bare-pairings", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			pair(b, points, twists)
		}
	})
	b.Run("way=relaypool", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			verifyBytes(b, key, v, Plain)
		}
	})
	b.Run("way=relaypool-negated", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			verifyBytes(b, key, negated, Negated)
		}
	})
}

// BenchmarkProofOnAllCores measures the throughput of both.
func BenchmarkProofOnAllCores(b *testing.B) {
	key, v := snarkjsKeyOf(b), snarkjsVectors(b)[2]
	points, twists := fourPairs()
	b.Run("way=bare-pairings", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				pair(b, points, twists)
			}
		})
	})
	b.Run("way=relaypool", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				verifyBytes(b, key, v, Plain)
			}
		})
	})
}

// fourPairs returns four pairs of points whose pairings multiply to one, as in a plain Groth16
// check. All differ, so that none is cheaper than in a real check.
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

func pair(b *testing.B, points []bn254.G1Affine, twists []bn254.G2Affine) {
	if ok, err := bn254.PairingCheck(points, twists); err != nil || !ok {
		b.Errorf("the product of the pairings is not one: %v", err)
	}
}

// BenchmarkParseKey measures the precomputation for a key with nine public inputs.
func BenchmarkParseKey(b *testing.B) {
	text := readFile(b, "verification_key.json")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseKey(text); err != nil {
			b.Fatal(err)
		}
	}
}

func verifyBytes(b *testing.B, key *Key, v vector, want ProofAEncoding) {
	proof, err := ParseProof(v.proof)
	if err != nil {
		b.Error(err)
		return
	}
	if sign, err := key.Verify(proof, v.publics); sign != want || err != nil {
		b.Errorf("sign %v, error %v", sign, err)
	}
}
