package submission

import (
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// returnedRent returns the rent, in lamports, that a landing returned to the relay's payers. An
// execution returns the rent of the swap state to its own payer. That may be a stranger, so only
// the relay's own executions count.
func (h *Handler) returnedRent(l txmgr.Landed) (lamports uint64) {
	if l.Ours && l.Purpose == txmgr.PurposeExecute {
		return h.Rent().Known().Minimum(shieldpool.SwapStateLength)
	}
	return 0
}
