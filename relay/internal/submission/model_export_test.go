package submission

import (
	"context"

	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// KeyHash is the name under which a client's Idempotency-Key is kept.
func KeyHash(key string, client [32]byte, c *shieldpool.Call) []byte {
	return idempotencyHash(key, client, c)
}

// Turn is what Submit asks before the commit of a judged submission whose proof has
// its A turned.
func (a *Admission) Turn(ctx context.Context, s *Submission) error {
	s.ProofAEncoding = groth16.Negated.String()
	unseen, err := a.ProofA.Accepts(ctx, groth16.Negated)
	if err != nil || unseen {
		return err
	}
	return a.trySimulation(ctx, s, groth16.Negated)
}
