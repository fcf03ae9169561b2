package admission

import (
	"context"

	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// verify verifies the proof without a call to the database or the chain, and returns the encoding
// of the proof's A.
func (a *Admission) verify(c *shieldpool.Call) (encoding groth16.ProofAEncoding, err error) {
	began := a.Now()
	proof, err := groth16.ParseProof(c.Proof)
	if err != nil {
		return encoding, refusal.New(refusal.ProofInvalid,
			"proof_bytes holds no points of the curve: expected A (G1) x‖y, B (G2) x.c1‖x.c0‖y.c1‖y.c0, C (G1) x‖y, big-endian and uncompressed").Because(err)
	}
	signals := c.Inputs.Signals()
	encoding, err = a.Key.Verify(proof, signals[:])
	a.Observer.Stage("verify", a.Now().Sub(began))
	if err != nil {
		return encoding, refusal.New(refusal.ProofInvalid,
			"the proof does not verify for these public inputs under the pool's verifying key: prove again with the pool's circuit and key").Because(err)
	}
	return encoding, nil
}

// acceptsEncoding reports whether proofs with the encoding are accepted without a simulation. It
// returns a refusal for an encoding that the setting --proof-a excludes.
func (a *Admission) acceptsEncoding(ctx context.Context, encoding groth16.ProofAEncoding) (bool, error) {
	accepted, err := a.ProofA.Accepts(ctx, encoding)
	if err == nil && !accepted && a.ProofA.Configured() {
		err = wrongEncoding(encoding)
	}
	return accepted, err
}

func wrongEncoding(s groth16.ProofAEncoding) error {
	return refusal.New(refusal.ProofInvalid, "the proof's A has the %s encoding, which the pool's program does not accept: send A in the other encoding; if this one is right, ask the relay's operator to check --proof-a and relay proof-a", s)
}

// tryEncoding simulates a call whose proof does not have the pinned encoding. The pin may be
// wrong, so the program decides.
func (a *Admission) tryEncoding(ctx context.Context, s *submission.Submission, encoding groth16.ProofAEncoding) error {
	why, badProof, err := a.Submissions.TryCall(ctx, s)
	switch {
	case err != nil:
		return refusal.New(refusal.ChainUnavailable,
			"the proof's A has another encoding than what has landed before, and the relay cannot try it on the chain now, so nothing was decided: send the same request again later").
			Retry(momentaryRetryAfter).Because(err)
	case badProof:
		return wrongEncoding(encoding)
	case why != nil:
		return why
	default:
		return nil
	}
}
