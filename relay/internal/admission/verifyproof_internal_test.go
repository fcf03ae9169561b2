package admission

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/consensys/gnark-crypto/ecc/bn254/fp"
	"k8s.io/utils/lru"

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
	secret, key := trapdoorKey(t, "verified proofs", shieldpool.SignalCount)
	verifications := 0
	a := &Admission{Options: Options{Now: time.Now, Observer: noStages{}}, verified: lru.New(verifiedKept)}
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
	negated, changed := slices.Clone(proof), slices.Clone(proof)
	y := new(big.Int).SetBytes(proof[32:64])
	y.Sub(fp.Modulus(), y).FillBytes(negated[32:64])
	changed[len(changed)-1] ^= 1
	type try struct {
		what     string
		call     *shieldpool.Call
		encoding groth16.ProofAEncoding
		verified bool // again
		refused  bool
	}
	tries := []try{
		{"a proof", call(proof, same), groth16.Plain, true, false},
		{"the same again", call(proof, same), groth16.Plain, false, false},
		{"another proof of the same", call(other, same), groth16.Plain, true, false},
		{"the first with A negated", call(negated, same), groth16.Negated, true, false},
		{"that again", call(negated, same), groth16.Negated, false, false},
		{"the first with a bit changed", call(changed, same), 0, false, true}, // C is no point then
		{"the first again", call(proof, same), groth16.Plain, false, false},
	}
	for i, change := range []func(*shieldpool.PublicInputs){
		func(in *shieldpool.PublicInputs) { in.Root[31]++ },
		func(in *shieldpool.PublicInputs) { in.PublicAmount++ },
		func(in *shieldpool.PublicInputs) { in.ExtDataHash[31]++ },
		func(in *shieldpool.PublicInputs) { in.MintAddress[31]++ },
		func(in *shieldpool.PublicInputs) { in.Nullifiers[0][31]++ },
		func(in *shieldpool.PublicInputs) { in.Nullifiers[1][31]++ },
		func(in *shieldpool.PublicInputs) { in.Commitments[0][31]++ },
		func(in *shieldpool.PublicInputs) { in.Commitments[1][31]++ },
		func(in *shieldpool.PublicInputs) { in.ChainNoteHash[31]++ },
	} {
		for range 2 { // what is refused is not remembered
			tries = append(tries, try{fmt.Sprintf("the first with public input %d changed", i), call(proof, change), 0, true, true})
		}
	}
	for _, tt := range tries {
		before := verifications
		encoding, err := a.verify(t.Context(), tt.call)
		r, _ := refusal.As(err)
		if tt.refused && (r == nil || r.Code != refusal.ProofInvalid) || !tt.refused && (err != nil || encoding != tt.encoding) {
			t.Errorf("%s: encoding %v, error %v", tt.what, encoding, err)
		}
		if got := verifications > before; got != tt.verified {
			t.Errorf("%s was verified: %v, want %v", tt.what, got, tt.verified)
		}
	}
}
