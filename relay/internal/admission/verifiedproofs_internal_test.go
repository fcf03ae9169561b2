package admission

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/relaypool/relaypool/hack/localnet/trapdoor"
	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// noStages is an observer that is told nothing but stages.
type noStages struct{ submission.Observer }

func (noStages) Stage(string, time.Duration) {}

func TestAProofIsVerifiedOnce(t *testing.T) {
	t.Parallel()
	secret := trapdoor.New("verified proofs", shieldpool.SignalCount)
	text, err := secret.VerifyingKey()
	if err != nil {
		t.Fatal(err)
	}
	key, err := groth16.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	verifications := 0
	a := &Admission{Options: Options{Now: time.Now, Observer: noStages{}}}
	a.proofs = newProofQueue(1, func(claims []groth16.Claim, expected groth16.ProofAEncoding) []groth16.Verdict {
		verifications += len(claims)
		return key.VerifyBatch(claims, expected, rand.NewChaCha8([32]byte{}))
	})
	inputs := &shieldpool.PublicInputs{Root: [32]byte{31: 7}, PublicAmount: -1, Commitments: [2][32]byte{{31: 8}, {31: 9}}}
	prove := func(random uint64) []byte {
		signals := inputs.Signals()
		proof, err := secret.Prove(signals[:], random)
		if err != nil {
			t.Fatal(err)
		}
		return proof
	}
	call := func(proof []byte, change func(*shieldpool.PublicInputs)) *shieldpool.Call {
		in := *inputs
		change(&in)
		return &shieldpool.Call{Proof: proof, Inputs: &in}
	}
	same := func(*shieldpool.PublicInputs) {}
	proof, other := prove(1), prove(2)
	for _, tt := range []struct {
		what     string
		call     *shieldpool.Call
		verified bool // again
		refused  bool
	}{
		{"a proof", call(proof, same), true, false},
		{"the same again", call(proof, same), false, false},
		{"another proof of the same", call(other, same), true, false},
		{"the first for another amount", call(proof, func(in *shieldpool.PublicInputs) { in.PublicAmount = -2 }), true, true},
		{"the same once more", call(proof, func(in *shieldpool.PublicInputs) { in.PublicAmount = -2 }), true, true},
		{"the first for another note", call(proof, func(in *shieldpool.PublicInputs) { in.Nullifiers[1][31] = 1 }), true, true},
		{"the first for another note hash", call(proof, func(in *shieldpool.PublicInputs) { in.ChainNoteHash[31] = 1 }), true, true},
		{"the first again", call(proof, same), false, false},
	} {
		before := verifications
		encoding, err := a.verify(t.Context(), tt.call)
		if r, _ := refusal.As(err); (r != nil) != tt.refused || (!tt.refused && (err != nil || encoding != groth16.Plain)) {
			t.Errorf("%s: encoding %v, error %v", tt.what, encoding, err)
		}
		if got := verifications > before; got != tt.verified {
			t.Errorf("%s was verified: %v, want %v", tt.what, got, tt.verified)
		}
	}
}

func TestTheLastProofsAreRemembered(t *testing.T) {
	t.Parallel()
	var v verifiedProofs
	id := func(i uint64) (id proofID) { binary.BigEndian.PutUint64(id[:], i); return id }
	for i := range uint64(10 * verifiedKept) {
		v.add(id(i), groth16.Negated)
		for _, age := range []uint64{0, verifiedKept - 1} {
			if encoding, ok := v.find(id(i - min(i, age))); !ok || encoding != groth16.Negated {
				t.Fatalf("of %d proofs, the one %d before is remembered as %v (%v)", i+1, age, encoding, ok)
			}
		}
	}
	if n := len(v.recent) + len(v.older); n > 2*verifiedKept {
		t.Errorf("%d proofs are remembered, want at most %d", n, 2*verifiedKept)
	}
}
