package txmgr

import (
	"context"
	"errors"
	"slices"

	"github.com/relaypool/relaypool/relay/onchain"
)

// errUnconfirmed reports that an attempt succeeded in a block that is not yet confirmed. A fork may
// still replace the block, so it is not certain yet that the attempt has landed.
var errUnconfirmed = errors.New("an attempt is on the chain, not yet confirmed")

// FindLanding searches all history for the attempts, of which some may count as dead. It returns
// nil when none of them landed.
func (m *Manager) FindLanding(ctx context.Context, j *Job, attempts []Attempt) (*Landing, error) {
	for batch := range slices.Chunk(attempts, statusBatch) {
		result, err := m.Chain.Search(ctx, signaturesOf(batch))
		if err != nil {
			return nil, Unreachable(j, err)
		}
		for i, st := range result.Statuses {
			switch {
			case st == nil || st.Err != nil && !st.Unverified:
			case st.Unverified:
				return nil, Unreachable(j, &onchain.Unavailable{Method: "getSignatureStatuses", Kind: onchain.KindUnverified, Detail: "no second endpoint confirms the status of an attempt"})
			case st.Confirmation.AtLeast(onchain.Confirmed):
				return &Landing{Signature: batch[i].Signature, Slot: st.Slot, Purpose: batch[i].Purpose}, nil
			default:
				return nil, errUnconfirmed
			}
		}
	}
	return nil, nil //nolint:nilnil // nil means that none landed, as documented
}
