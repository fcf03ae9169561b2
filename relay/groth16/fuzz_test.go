package groth16

import (
	"bytes"
	"errors"
	"testing"
)

// FuzzParseProof checks that accepted bytes are the only encoding of their points, and
// that a refusal names a fault.
func FuzzParseProof(f *testing.F) {
	for _, v := range snarkjsVectors(f) {
		f.Add(v.proof)
		f.Add(negateG1(f, v.proof, 0))
		f.Add(splice(v.proof, 0, make([]byte, 64)))
		f.Add(v.proof[:255])
	}
	f.Add(make([]byte, ProofSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ParseProof(b)
		if err != nil {
			for _, fault := range []error{ErrLength, ErrNonCanonical, ErrInfinity, ErrNotOnCurve, ErrNotInSubgroup} {
				if errors.Is(err, fault) {
					return
				}
			}
			t.Fatalf("untyped error: %v", err)
		}
		pa, pb, pc := p.a.RawBytes(), p.b.RawBytes(), p.c.RawBytes()
		if again := bytes.Join([][]byte{pa[:], pb[:], pc[:]}, nil); !bytes.Equal(again, b) {
			t.Fatal("accepted bytes are not the encoding of the proof")
		}
	})
}

// FuzzParseKey checks that no text makes the parser panic, and that an accepted
// key refuses a wrong proof.
func FuzzParseKey(f *testing.F) {
	good := readFile(f, "verification_key.json")
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add(newTrapdoor(1).json(f))
	f.Add([]byte(`{"protocol":"groth16","curve":"bn128","nPublic":1,"IC":[[],[]]}`))
	proof := mustParseProof(f, snarkjsVectors(f)[0].proof)
	f.Fuzz(func(t *testing.T, text []byte) {
		key, err := ParseKey(text)
		if err != nil {
			return
		}
		if sign, err := key.Verify(proof, make([][32]byte, key.NPublic())); !errors.Is(err, ErrInvalid) {
			t.Fatalf("all-zero public inputs: sign %v, error %v", sign, err)
		}
	})
}
