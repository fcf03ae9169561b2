package chain

import "time"

const (
	// After singleSufficesAfter without corroboration by a second endpoint, the other endpoints
	// count as unreachable, and a single endpoint suffices.
	singleSufficesAfter = time.Minute
	// maxSearchGap is the longest gap between two uncorroborated searches of one series. After a
	// longer gap, the wait for singleSufficesAfter starts again. The value is above one minute,
	// because held submissions are searched once a minute.
	maxSearchGap = 90 * time.Second
)

// recordCorroboration records whether a second endpoint corroborated a search. It returns true if
// one did, or if none has corroborated any search during the last singleSufficesAfter: a single
// endpoint then suffices.
func (h *heights) recordCorroboration(corroborated bool, now time.Time) (enough bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if corroborated {
		h.firstUncorroborated = time.Time{}
		return true
	}
	if h.firstUncorroborated.IsZero() || now.Sub(h.lastUncorroborated) > maxSearchGap {
		h.firstUncorroborated = now
	}
	h.lastUncorroborated = now
	return now.Sub(h.firstUncorroborated) >= singleSufficesAfter
}
