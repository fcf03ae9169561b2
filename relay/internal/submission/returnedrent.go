package submission

import (
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// returnedRent computes how much rent, in lamports, the relay's payers got back by a landing. The
// execution of a swap returns the rent of the swap state to the payer of the execution. That payer
// may be a stranger, so only the relay's own executions count.
func (h *Handler) returnedRent(l txmgr.Landed) (lamports uint64) {
	// While the rate of rent is unknown, Known returns the highest rate.
	if l.Ours && l.Purpose == txmgr.PurposeExecute {
		return h.Rent().Known().Minimum(shieldpool.SwapStateLength)
	}
	return 0
}
