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

// BlockhashLife returns how long a blockhash is valid if each slot takes slotTime.
func BlockhashLife(slotTime time.Duration) time.Duration { return BlockhashBlocks * slotTime }

// SlotsIn returns the number of slots in the time d, rounded up, if each slot takes slotTime.
func SlotsIn(d, slotTime time.Duration) uint64 {
	if d <= 0 {
		return 0
	}
	return uint64((d + slotTime - 1) / slotTime) //nolint:gosec // not negative
}
