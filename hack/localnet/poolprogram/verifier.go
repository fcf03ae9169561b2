package poolprogram

import (
	"crypto/sha256"
	"sync"

	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// verdictsKept bounds the memory of the verifier.
const verdictsKept = 1024

// verifier checks proofs and remembers its last verdicts: a transaction is
// simulated before it is executed, and sent again and again until it lands,
// and every time the program sees the same proof.
type verifier struct {
	key *groth16.Key

	mu       sync.Mutex
	verdicts map[[sha256.Size]byte]bool
	order    [][sha256.Size]byte
}

func newVerifier(key *groth16.Key) *verifier {
	return &verifier{key: key, verdicts: make(map[[sha256.Size]byte]bool, verdictsKept)}
}

// holds reports whether the proof, with A as the prover made it, holds for the
// public inputs.
func (v *verifier) holds(proof []byte, in *shieldpool.PublicInputs) bool {
	hash := sha256.New()
	hash.Write(proof)
	hash.Write(in.Bytes())
	id := [sha256.Size]byte(hash.Sum(nil))

	v.mu.Lock()
	verdict, known := v.verdicts[id]
	v.mu.Unlock()
	if known {
		return verdict
	}
	verdict = v.verify(proof, in)
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, known := v.verdicts[id]; known {
		return verdict
	}
	if len(v.order) == verdictsKept {
		delete(v.verdicts, v.order[0])
		v.order = v.order[1:]
	}
	v.verdicts[id] = verdict
	v.order = append(v.order, id)
	return verdict
}

func (v *verifier) verify(proof []byte, in *shieldpool.PublicInputs) bool {
	parsed, err := groth16.ParseProof(proof)
	if err != nil {
		return false
	}
	signals := in.Signals()
	sign, err := v.key.Verify(parsed, signals[:])
	return err == nil && sign == groth16.Plain
}
