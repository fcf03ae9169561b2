package poolprogram

import (
	"crypto/sha256"
	"sync"

	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// verdictsKept bounds the memory of the verifier to about 2 MB. It is half a
// minute of 300 transactions a second, and more than a fork can bring back.
const verdictsKept = 8192

// verifier checks proofs and caches its last verdicts: a transaction is
// simulated before it is executed, and sent to several nodes repeatedly until
// it lands, each time with the same proof.
type verifier struct {
	verify func(proof []byte, in *shieldpool.PublicInputs) bool

	mu       sync.Mutex
	verdicts map[[sha256.Size]byte]*verdict
	// order is a ring of the verdicts' keys; oldest is the next to go.
	order  [][sha256.Size]byte
	oldest int
}

// verdict is settled by the first who asks; the others wait for it.
type verdict struct {
	once  sync.Once
	holds bool
}

func newVerifier(verify func(proof []byte, in *shieldpool.PublicInputs) bool) *verifier {
	return &verifier{verify: verify, verdicts: make(map[[sha256.Size]byte]*verdict)}
}

// verifyWith returns a verifier under a key, for proofs with A as the prover
// made it.
func verifyWith(key *groth16.Key) func([]byte, *shieldpool.PublicInputs) bool {
	return func(proof []byte, in *shieldpool.PublicInputs) bool {
		parsed, err := groth16.ParseProof(proof)
		if err != nil {
			return false
		}
		signals := in.Signals()
		sign, err := key.Verify(parsed, signals[:])
		return err == nil && sign == groth16.Plain
	}
}

// holds reports whether the proof is valid for the public inputs. A proof
// without a cached verdict is verified.
func (v *verifier) holds(proof []byte, in *shieldpool.PublicInputs) bool {
	hash := sha256.New()
	hash.Write(proof)
	hash.Write(in.Bytes())
	of := v.verdict([sha256.Size]byte(hash.Sum(nil)))
	of.once.Do(func() { of.holds = v.verify(proof, in) })
	return of.holds
}

// verdict returns the verdict of an id, not settled when it is new.
func (v *verifier) verdict(id [sha256.Size]byte) *verdict {
	v.mu.Lock()
	defer v.mu.Unlock()
	if known, ok := v.verdicts[id]; ok {
		return known
	}
	made := new(verdict)
	v.verdicts[id] = made
	if len(v.order) < verdictsKept {
		v.order = append(v.order, id)
		return made
	}
	delete(v.verdicts, v.order[v.oldest])
	v.order[v.oldest] = id
	v.oldest = (v.oldest + 1) % verdictsKept
	return made
}
