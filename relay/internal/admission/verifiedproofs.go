package admission

import (
	"crypto/sha256"
	"sync"

	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// verifiedKept is how many proofs are remembered at least: more than come while a client waits as long as a busy
// pool tells it to.
const verifiedKept = 16_384

// verifiedProofs remembers the last proofs that verified. Clients repeat what was refused for the moment, or got
// no answer, and to verify those proofs again would take the time of what was accepted.
type verifiedProofs struct {
	mu sync.Mutex
	// When recent is full, it takes the place of older. What is found in older is added to recent again.
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
	if encoding, ok = v.recent[id]; ok {
		return encoding, true
	}
	if encoding, ok = v.older[id]; ok {
		v.addLocked(id, encoding)
	}
	return encoding, ok
}

func (v *verifiedProofs) add(id proofID, encoding groth16.ProofAEncoding) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.addLocked(id, encoding)
}

func (v *verifiedProofs) addLocked(id proofID, encoding groth16.ProofAEncoding) {
	if len(v.recent) >= verifiedKept {
		v.older, v.recent = v.recent, nil
	}
	if v.recent == nil {
		v.recent = make(map[proofID]groth16.ProofAEncoding)
	}
	v.recent[id] = encoding
}
