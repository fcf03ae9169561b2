package admission

import (
	"context"

	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// verify verifies the proof without a call to the database or the chain, and returns the encoding
// of the proof's A. A proof that verified a moment ago is not verified again.
func (a *Admission) verify(ctx context.Context, c *shieldpool.Call) (encoding groth16.ProofAEncoding, err error) {
	began := a.Now()
	signals := c.Inputs.Signals()
	id := idOf(c.Proof, signals)
	if encoding, ok := a.verified.find(id); ok {
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
	a.verified.add(id, verdict.Encoding)
	return verdict.Encoding, nil
}
