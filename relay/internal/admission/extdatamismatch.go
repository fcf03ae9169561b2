package admission

import (
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// checkDestination refuses a call whose extDataHash does not bind the destination that the request
// names.
func (a *Admission) checkDestination(c *shieldpool.Call) error {
	if !a.Pool.Profile.BindsDestination(c.Inputs, c.Destination) {
		return extDataMismatch(c.Kind())
	}
	return nil
}

func extDataMismatch(k shieldpool.Kind) *refusal.Refusal {
	if k == shieldpool.KindSwap {
		return refusal.New(refusal.ExtDataMismatch,
			"extDataHash does not bind this swap: expected 0x00 and the first 31 bytes of sha256 of output_mint ‖ recipient_ata ‖ min_output_amount, the addresses as 32 bytes each and the amount as u64 little-endian; make the proof for the swap that the request names")
	}
	return refusal.New(refusal.ExtDataMismatch,
		"extDataHash does not bind this recipient: expected 0x00 and the first 31 bytes of sha256 of the recipient's 32 bytes; make the proof for the recipient that the request names")
}
