package admission

import (
	"context"

	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/refusal"
)

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
