package trapdoor_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/relaypool/relaypool/hack/localnet/trapdoor"
	"github.com/relaypool/relaypool/relay/groth16"
)

func TestProofIsValidOnlyForItsPublicInputs(t *testing.T) {
	t.Parallel()
	secretKey := trapdoor.New("test", 3)
	json, err := secretKey.VerifyingKey()
	if err != nil {
		t.Fatal(err)
	}
	key, err := groth16.ParseKey(json)
	if err != nil {
		t.Fatal(err)
	}
	publics := [][32]byte{{31: 1}, {31: 2}, {30: 7}}
	other := [][32]byte{{31: 1}, {31: 2}, {30: 8}}
	raw, err := secretKey.Prove(publics, 1)
	if err != nil {
		t.Fatal(err)
	}
	proof, err := groth16.ParseProof(raw)
	if err != nil {
		t.Fatal(err)
	}
	if encoding, err := key.Verify(proof, publics); err != nil || encoding != groth16.Plain {
		t.Errorf("verified as %s with error %v, want a plain proof", encoding, err)
	}
	if _, err := key.Verify(proof, other); !errors.Is(err, groth16.ErrInvalid) {
		t.Errorf("for other public inputs: error %v, want ErrInvalid", err)
	}
	again, err := secretKey.Prove(publics, 2)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(raw, again) {
		t.Error("another nonce gives the same proof")
	}
	if _, err := secretKey.Prove(publics[:2], 1); err == nil {
		t.Error("two of three public inputs are accepted, want an error")
	}
	foreign, err := trapdoor.New("other", 3).Prove(publics, 1)
	if err != nil {
		t.Fatal(err)
	}
	if proof, err = groth16.ParseProof(foreign); err != nil {
		t.Fatal(err)
	}
	if _, err := key.Verify(proof, publics); !errors.Is(err, groth16.ErrInvalid) {
		t.Errorf("a proof under another key: error %v, want ErrInvalid", err)
	}
}

func BenchmarkProve(b *testing.B) {
	key := trapdoor.New("bench", 9)
	publics := make([][32]byte, 9)
	for i := 0; b.Loop(); i++ {
		if _, err := key.Prove(publics, uint64(i)); err != nil {
			b.Fatal(err)
		}
	}
}
