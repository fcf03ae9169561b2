package onchain

import "time"

const (
	// NominalSlot is the network's slot time since October 2026 (SIMD-0525). It is used until the
	// chain's own slot time is measured.
	NominalSlot = 200 * time.Millisecond
	// ShortestSlot is the shortest plausible slot time: a local chain may be this fast.
	ShortestSlot = time.Millisecond
	// LongestSlot is the longest plausible slot time.
	LongestSlot = 5 * time.Second
	// BlockhashBlocks is the number of blocks for which a blockhash stays valid after its own block
	// (Agave).
	BlockhashBlocks = 150
)

// BlockhashLife is how long a blockhash is valid when each slot takes the given time.
func BlockhashLife(slot time.Duration) time.Duration { return BlockhashBlocks * slot }

// SlotsIn is the number of slots that the time d takes, rounded up, when each takes the time slot.
func SlotsIn(d, slot time.Duration) uint64 {
	if d <= 0 {
		return 0
	}
	return uint64((d + slot - 1) / slot) //nolint:gosec // not negative
}
