package chain

import "time"

const (
	// maxBlockhashLead is the number of slots by which a blockhash may be newer than the slot
	// that its endpoint reported.
	maxBlockhashLead = 32
	// maxFinalizedReports is how many finalized blocks of an endpoint are remembered: twice the
	// number needed for an honest endpoint.
	maxFinalizedReports = 256
)

// finalizedReport is a finalized block that an endpoint reported when its newest block was at
// most at maxHeight.
type finalizedReport struct {
	block
	maxHeight uint64
	at        time.Time
}

// recordFinalized records a finalized block that the endpoint reported when it had reached the
// slot tip. It returns the slot up to which, and the time before which, all blockhashes have
// expired. Only this endpoint's reports decide: it has since passed the blocks of these
// blockhashes by more than blockhashLifetime. Recorded last valid heights play no part.
func (h *heights) recordFinalized(i int, b block, tip uint64, now time.Time) (expired uint64, before time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &h.reports[i]
	if n := len(s.final); n > 0 {
		if above, below := s.final[n-1].agreement().distance(b); max(above, below) > h.slack {
			s.final = nil // the endpoint's reports are inconsistent
		}
	}
	if n := len(s.final); n == 0 || b.height >= s.final[n-1].height+4 {
		s.final = append(s.final, finalizedReport{b, b.height + tip - min(tip, b.slot), now})
	}
	firstNeeded := 0
	for k, f := range s.final {
		if f.height+blockhashLifetime < b.height {
			expired = f.slot - min(f.slot, maxBlockhashLead)
		}
		// Twice blockhashLifetime: the endpoint of the blockhash may have been ahead by that much.
		if f.maxHeight+2*blockhashLifetime < b.height {
			before, firstNeeded = f.at, k
		}
	}
	s.final = s.final[max(firstNeeded, len(s.final)-maxFinalizedReports):]
	return expired, before
}
