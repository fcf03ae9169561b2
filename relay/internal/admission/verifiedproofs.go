package admission

import (
	"crypto/sha256"
	"sync"

	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// verifiedKept is how many proofs are remembered at least.
const verifiedKept = 4096

// verifiedProofs remembers the last proofs that verified. Clients repeat what was refused for the moment, or got
// no answer, and to verify those proofs again would take the time of what was accepted.
type verifiedProofs struct {
	mu sync.Mutex
	// recent becomes older when it is full.
	recent, older map[proofID]groth16.ProofAEncoding
}

// proofID is a hash of all that the verifier reads.
type proofID [sha256.Size]byte

func idOf(proof []byte, signals [shieldpool.SignalCount][32]byte) (id proofID) {
	h := sha256.New()
	for _, s := range signals {
		h.Write(s[:])
	}
	h.Write(proof)
	return proofID(h.Sum(nil))
}

func (v *verifiedProofs) find(id proofID) (encoding groth16.ProofAEncoding, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if encoding, ok = v.recent[id]; !ok {
		encoding, ok = v.older[id]
	}
	return encoding, ok
}

func (v *verifiedProofs) add(id proofID, encoding groth16.ProofAEncoding) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.recent) >= verifiedKept {
		v.older, v.recent = v.recent, nil
	}
	if v.recent == nil {
		v.recent = make(map[proofID]groth16.ProofAEncoding)
	}
	v.recent[id] = encoding
}
