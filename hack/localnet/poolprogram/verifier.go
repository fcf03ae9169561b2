package poolprogram

import (
	"crypto/sha256"
	"sync"

	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// verdictsKept is the number of cached verdicts, about 2 MB, after which the cache begins anew. At 300
// transactions a second it lasts half a minute, which is longer than a fork can reach back.
const verdictsKept = 8192

// verifier verifies proofs and caches the verdicts. A transaction needs the same verdict
// several times: it is simulated, sent to several nodes, and sent again until it lands.
type verifier struct {
	verify func(proof []byte, in *shieldpool.PublicInputs) bool

	mu       sync.Mutex
	verdicts map[[sha256.Size]byte]*verdict
}

// verdict is the result of one verification. The first caller verifies; concurrent
// callers wait for the result.
type verdict struct {
	once  sync.Once
	valid bool
}

func newVerifier(verify func(proof []byte, in *shieldpool.PublicInputs) bool) *verifier {
	return &verifier{verify: verify, verdicts: make(map[[sha256.Size]byte]*verdict)}
}

// verifyWith returns a function that verifies proofs under a key. As on the chain, it
// accepts only plain proofs, whose point A is not negated.
func verifyWith(key *groth16.Key) func([]byte, *shieldpool.PublicInputs) bool {
	return func(proof []byte, in *shieldpool.PublicInputs) bool {
		parsed, err := groth16.ParseProof(proof)
		if err != nil {
			return false
		}
		signals := in.Signals()
		encoding, err := key.Verify(parsed, signals[:])
		return err == nil && encoding == groth16.Plain
	}
}

// valid reports whether the proof is valid for the public inputs. It verifies only
// if no verdict is cached.
func (v *verifier) valid(proof []byte, in *shieldpool.PublicInputs) bool {
	hash := sha256.New()
	hash.Write(proof)
	hash.Write(in.Bytes())
	cached := v.verdict([sha256.Size]byte(hash.Sum(nil)))
	cached.once.Do(func() { cached.valid = v.verify(proof, in) })
	return cached.valid
}

// verdict returns the cached verdict of an id, or a new one that is not yet verified.
func (v *verifier) verdict(id [sha256.Size]byte) *verdict {
	v.mu.Lock()
	defer v.mu.Unlock()
	if known, ok := v.verdicts[id]; ok {
		return known
	}
	if len(v.verdicts) >= verdictsKept {
		clear(v.verdicts)
	}
	added := new(verdict)
	v.verdicts[id] = added
	return added
}
