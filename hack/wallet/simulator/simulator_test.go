package simulator_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"github.com/relaypool/relaypool/hack/localnet/trapdoor"
	"github.com/relaypool/relaypool/hack/wallet/simulator"
	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

func developmentKey(tb testing.TB) []byte {
	tb.Helper()
	text, err := os.ReadFile("../../circuit/verification_key.json")
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// random returns public inputs of a deposit, a transfer or a withdrawal, some without a second
// nullifier.
func random(r *rand.Rand) *shieldpool.PublicInputs {
	in := &shieldpool.PublicInputs{PublicAmount: r.Int64N(1<<40) - 1<<39}
	if r.IntN(3) == 0 {
		in.PublicAmount = 0
	}
	for _, field := range []*[32]byte{
		&in.Root, &in.ExtDataHash, &in.MintAddress, &in.Nullifiers[0], &in.Nullifiers[1], &in.Commitments[0], &in.Commitments[1], &in.ChainNoteHash,
	} {
		var raw [40]byte
		for i := range raw {
			raw[i] = byte(r.Uint32())
		}
		var e fr.Element
		e.SetBytes(raw[:])
		*field = e.Bytes()
	}
	if r.IntN(3) == 0 {
		in.Nullifiers[1] = [32]byte{}
	}
	return in
}

// The test uses the committed key. The tests of hack/circuit show that this key comes from the
// seed. New accepts the key only if the simulator derives the same secrets.
func TestSimulatedProofsAreValidForTheDevelopmentKey(t *testing.T) {
	t.Parallel()
	text := developmentKey(t)
	key, err := groth16.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	s, err := simulator.New(text, simulator.DevelopmentSeed)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 1000 {
		in := random(r)
		wire := s.Prove(in, uint64(i))
		proof, err := groth16.ParseProof(wire[:])
		if err != nil {
			t.Fatalf("proof %d: %v", i, err)
		}
		signals := in.Signals()
		if encoding, err := key.Verify(proof, signals[:]); err != nil || encoding != groth16.Plain {
			t.Fatalf("proof %d: got encoding %s, error %v; want a valid plain proof", i, encoding, err)
		}
		if i%100 != 0 {
			continue
		}
		for j := range signals {
			other := signals
			other[j] = [32]byte{31: 1}
			if _, err := key.Verify(proof, other[:]); !errors.Is(err, groth16.ErrInvalid) {
				t.Errorf("proof %d with another signal %d: error %v, want ErrInvalid", i, j, err)
			}
		}
	}
}

func TestTheNonceMakesProofsDiffer(t *testing.T) {
	t.Parallel()
	s, err := simulator.New(developmentKey(t), simulator.DevelopmentSeed)
	if err != nil {
		t.Fatal(err)
	}
	in := random(rand.New(rand.NewPCG(3, 4)))
	first, again, other := s.Prove(in, 1), s.Prove(in, 1), s.Prove(in, 2)
	if first != again {
		t.Error("the same inputs and nonce gave different proofs, want the same")
	}
	for part, at := range map[string][2]int{"A": {0, 64}, "B": {64, 192}, "C": {192, 256}} {
		if bytes.Equal(first[at[0]:at[1]], other[at[0]:at[1]]) {
			t.Errorf("another nonce gave the same point %s, want another", part)
		}
	}
}

func TestNewRejectsOtherKeysAndSeeds(t *testing.T) {
	t.Parallel()
	foreign, err := trapdoor.New("another", shieldpool.SignalCount).VerifyingKey()
	if err != nil {
		t.Fatal(err)
	}
	short, err := trapdoor.New("another", 3).VerifyingKey()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		key  []byte
		seed string
		want string
	}{
		"a key from another set-up":           {foreign, simulator.DevelopmentSeed, "does not belong to the seed"},
		"another seed":                        {developmentKey(t), "another", "does not belong to the seed"},
		"a key with another number of inputs": {short, simulator.DevelopmentSeed, "has 3 public inputs, expected 9"},
		"JSON that is not a key":              {[]byte("{}"), simulator.DevelopmentSeed, "verification key"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := simulator.New(tc.key, tc.seed); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

func BenchmarkProve(b *testing.B) {
	s, err := simulator.New(developmentKey(b), simulator.DevelopmentSeed)
	if err != nil {
		b.Fatal(err)
	}
	in := random(rand.New(rand.NewPCG(5, 6)))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.Prove(in, uint64(i))
	}
}
