package chain

import "time"

const (
	// maxBlockhashLead is the greatest number of slots by which a blockhash may be newer than the
	// slot that the endpoint reported with it.
	maxBlockhashLead = 32
	// maxFinalizedReports is how many finalized blocks of an endpoint are remembered: twice the
	// number needed for an honest endpoint.
	maxFinalizedReports = 256
)

// finalizedReport is a finalized block, and the time at which an endpoint reported it. maxHeight is
// an upper bound of the endpoint's height at that time.
type finalizedReport struct {
	block
	maxHeight uint64
	at        time.Time
}

// recordFinalized records a finalized block that endpoint i has reported. The endpoint had reached
// at most highestSlot when it reported the block. All blockhashes of slots up to expiredSlot have
// expired, and all blockhashes that were fetched before expiredBefore have expired too: this
// endpoint has finalized more than blockhashLifetime blocks after them. The results do not depend
// on recorded last valid heights, because these may be wrong.
func (h *heights) recordFinalized(i int, b block, highestSlot uint64, now time.Time) (expiredSlot uint64, expiredBefore time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &h.reports[i]
	if n := len(s.final); n > 0 {
		if above, below := s.final[n-1].agreement().distance(b); max(above, below) > h.slack {
			s.final = nil // the endpoint's reports are inconsistent
		}
	}
	// Reports that are four blocks apart suffice, and keep the list short.
	if n := len(s.final); n == 0 || b.height >= s.final[n-1].height+4 {
		s.final = append(s.final, finalizedReport{b, b.height + highestSlot - min(highestSlot, b.slot), now})
	}
	firstNeeded := 0
	for k, f := range s.final {
		if f.height+blockhashLifetime < b.height {
			expiredSlot = f.slot - min(f.slot, maxBlockhashLead)
		}
		// Twice, because the endpoint that returned the blockhash may have been up to
		// blockhashLifetime blocks ahead of this one.
		if f.maxHeight+2*blockhashLifetime < b.height {
			expiredBefore, firstNeeded = f.at, k
		}
	}
	s.final = s.final[max(firstNeeded, len(s.final)-maxFinalizedReports):]
	return expiredSlot, expiredBefore
}
