package groth16

import "testing"

// BenchmarkVerify is one proof on one core, from its bytes, every check included.
func BenchmarkVerify(b *testing.B) {
	key, v := snarkjsKeyOf(b), snarkjsVectors(b)[2]
	b.ReportAllocs()
	for b.Loop() {
		verifyBytes(b, key, v, Plain)
	}
}

// BenchmarkVerifyNegated is the same with −A, which takes a second final exponentiation.
func BenchmarkVerifyNegated(b *testing.B) {
	key, v := snarkjsKeyOf(b), snarkjsVectors(b)[2]
	v.proof = negateG1(b, v.proof, 0)
	b.ReportAllocs()
	for b.Loop() {
		verifyBytes(b, key, v, Negated)
	}
}

// BenchmarkVerifyParallel is the throughput on all cores.
func BenchmarkVerifyParallel(b *testing.B) {
	key, v := snarkjsKeyOf(b), snarkjsVectors(b)[2]
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			verifyBytes(b, key, v, Plain)
		}
	})
}

// BenchmarkParseKey is the precomputation for a key with nine public inputs.
func BenchmarkParseKey(b *testing.B) {
	text := readFile(b, "verification_key.json")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseKey(text); err != nil {
			b.Fatal(err)
		}
	}
}

func verifyBytes(b *testing.B, key *Key, v vector, want Sign) {
	proof, err := ParseProof(v.proof)
	if err != nil {
		b.Error(err)
		return
	}
	if sign, err := key.Verify(proof, v.publics); sign != want || err != nil {
		b.Errorf("sign %v, error %v", sign, err)
	}
}
