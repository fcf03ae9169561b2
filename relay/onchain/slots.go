package onchain

import "time"

const (
	// NominalSlot is the network's time for a slot since October 2026 (SIMD-0525), which
	// counts until the chain's own is measured.
	NominalSlot = 200 * time.Millisecond
	// ShortestSlot is the shortest time for a slot that is believed: a local chain may be fast.
	ShortestSlot = time.Millisecond
	// LongestSlot is the longest time for a slot that is believed.
	LongestSlot = 5 * time.Second
	// BlockhashBlocks is the number of blocks after its own in which a blockhash is valid
	// (Agave).
	BlockhashBlocks = 150
)

// BlockhashLife is how long a blockhash is valid when each slot takes the given time.
func BlockhashLife(slot time.Duration) time.Duration { return BlockhashBlocks * slot }

// SlotsIn is the number of slots that begin in a time, rounded up.
func SlotsIn(d, slot time.Duration) uint64 {
	if d <= 0 {
		return 0
	}
	return uint64((d + slot - 1) / slot) //nolint:gosec // not negative
}
