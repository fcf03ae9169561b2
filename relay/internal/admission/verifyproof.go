package admission

import (
	"context"
	"crypto/sha256"

	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// verifiedKept is how many proofs that verified are remembered. Clients repeat what was refused for the moment, or
// got no answer, and to verify those proofs again would take the time of what was accepted. So many come at
// 680 a second in the longest Retry-After of a busy pool, 24 s.
const verifiedKept = 16_384

// proofID is a hash of all that the verifier reads.
type proofID [sha256.Size]byte

func idOf(proof []byte, signals [shieldpool.SignalCount][32]byte) proofID {
	h := sha256.New()
	for _, s := range signals {
		h.Write(s[:])
	}
	h.Write(proof)
	return proofID(h.Sum(nil))
}

// verify verifies the proof without a call to the database or the chain, and returns the encoding
// of the proof's A. It does not verify a proof again that it remembers.
func (a *Admission) verify(ctx context.Context, c *shieldpool.Call) (encoding groth16.ProofAEncoding, err error) {
	began := a.Now()
	signals := c.Inputs.Signals()
	id := idOf(c.Proof, signals)
	if remembered, ok := a.verified.Get(id); ok {
		encoding, _ = remembered.(groth16.ProofAEncoding)
		return encoding, nil
	}
	proof, err := groth16.ParseProof(c.Proof)
	if err != nil {
		return encoding, refusal.New(refusal.ProofInvalid,
			"proof_bytes holds no points of the curve: expected A (G1) x‖y, B (G2) x.c1‖x.c0‖y.c1‖y.c0, C (G1) x‖y, big-endian and uncompressed").Because(err)
	}
	verdict, err := a.proofs.verify(ctx, groth16.Claim{Proof: proof, Publics: signals[:]})
	if err != nil {
		return encoding, err
	}
	a.Observer.Stage("verify", a.Now().Sub(began))
	if verdict.Err != nil {
		return encoding, refusal.New(refusal.ProofInvalid,
			"the proof does not verify for these public inputs under the pool's verifying key: prove again with the pool's circuit and key").Because(verdict.Err)
	}
	a.verified.Add(id, verdict.Encoding)
	return verdict.Encoding, nil
}
