package chain

import (
	"context"
	"fmt"

	"github.com/relaypool/relaypool/relay/onchain"
)

// errOneAnswer reports that only one endpoint answered when all were asked about a nullifier.
var errOneAnswer = fmt.Errorf("%w: one endpoint reports that a note is spent, and no other endpoint answered", onchain.ErrUnavailable)

// Spent asks all endpoints about a nullifier that one endpoint has reported as spent. A nullifier
// is spent when its account exists and belongs to the program. Spent returns true when all
// endpoints that answer report the nullifier as spent, or only one endpoint is configured. It
// returns false when one of them reports the opposite, for example because that endpoint is behind
// or has lost the account. Spent fails with chain_unavailable when only one of several endpoints
// answers: it may be the one that reported the nullifier as spent before.
func (p *PoolReader) Spent(ctx context.Context, nullifier [32]byte) (bool, error) {
	if p.allEndpoints == nil {
		return true, nil
	}
	key, _, err := p.pool.Nullifier(nullifier)
	if err != nil {
		return false, fmt.Errorf("derive nullifier address: %w", err)
	}
	reported := p.allEndpoints(ctx, key)
	for _, t := range reported {
		if t.Account == nil || !t.Account.Owner.Equals(p.pool.Profile.ProgramID) {
			return false, nil
		}
	}
	if len(reported) < 2 {
		return false, unavailable(errOneAnswer)
	}
	return true, nil
}
