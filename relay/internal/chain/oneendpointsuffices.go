package chain

import "time"

const (
	// singleSufficesAfter is the time without any corroboration by a second endpoint after which a
	// single endpoint suffices, because the others are unreachable.
	singleSufficesAfter = time.Minute
	// searchStopsAfter is the time after which a second endpoint counts as no longer needed:
	// held submissions are searched once a minute.
	searchStopsAfter = 90 * time.Second
)

// recordCorroboration records whether a second endpoint corroborated a search. It returns true
// if so, or if one endpoint suffices because no other has corroborated repeated searches for
// singleSufficesAfter.
func (h *heights) recordCorroboration(corroborated bool, now time.Time) (enough bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if corroborated {
		h.aloneSince = time.Time{}
		return true
	}
	if h.aloneSince.IsZero() || now.Sub(h.wantedAt) > searchStopsAfter {
		h.aloneSince = now
	}
	h.wantedAt = now
	return now.Sub(h.aloneSince) >= singleSufficesAfter
}
