package chain

import "time"

const (
	// singleSufficesAfter is the time without any corroboration by a second endpoint after which a
	// single endpoint suffices, because the others are unreachable.
	singleSufficesAfter = time.Minute
	// maxSearchGap is the longest time between two uncorroborated searches that belong to one
	// series: held submissions are searched once a minute. After a longer gap the time until a
	// single endpoint suffices starts again.
	maxSearchGap = 90 * time.Second
)

// recordCorroboration records whether a second endpoint corroborated a search. It returns true
// if one did. It also returns true if a single endpoint suffices, because no other endpoint has
// corroborated the repeated searches of the last singleSufficesAfter.
func (h *heights) recordCorroboration(corroborated bool, now time.Time) (enough bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if corroborated {
		h.aloneSince = time.Time{}
		return true
	}
	if h.aloneSince.IsZero() || now.Sub(h.wantedAt) > maxSearchGap {
		h.aloneSince = now
	}
	h.wantedAt = now
	return now.Sub(h.aloneSince) >= singleSufficesAfter
}
