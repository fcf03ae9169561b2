package onchain

import "time"

// clockTolerance is the greatest difference between the clocks of two processes: the one that
// signed a transaction, and the one that reads the chain.
const clockTolerance = 30 * time.Second

// Fate is what one search of the chain shows about one signed transaction.
type Fate int

// The values of Fate.
const (
	// MayLand: it may still land.
	MayLand Fate = iota
	// Landed: it is at least confirmed, and succeeded.
	Landed
	// FailedOnChain: it landed with an error, and is finalized.
	FailedOnChain
	// Expired: it is not on the chain and can never be.
	Expired
	// Forgotten: it cannot land any more, but the endpoint's history is too short to show
	// whether it has landed.
	Forgotten
)

// Fate decides what became of a signed transaction; no other code decides whether one has expired.
// st is the transaction's status in the search, nil if the search did not find it. The
// transaction's blockhash was read at blockhashSlot and expires after lastValidBlockHeight. A
// failure on the chain counts only when it is finalized, because the same bytes can succeed on
// another fork. A transaction that the search did not find has expired if the history goes back to
// blockhashSlot and at least one of three conditions holds: the finalized height is above
// lastValidBlockHeight, all blockhashes up to blockhashSlot have expired, or all blockhashes that
// existed at signing have expired. One condition suffices, because the height and the slot that
// were recorded at signing may be too high.
func (l *SearchResult) Fate(st *Status, blockhashSlot, lastValidBlockHeight uint64, signedAt time.Time) Fate {
	switch {
	case st != nil && st.Unverified:
		return MayLand
	case st != nil && st.Err == nil && st.Confirmation.AtLeast(Confirmed):
		return Landed
	case st != nil && st.Err != nil && st.Confirmation.AtLeast(Finalized):
		return FailedOnChain
	case st != nil || (l.FinalizedHeight <= lastValidBlockHeight && l.ExpiredSlot < max(blockhashSlot, 1) && !l.expired(signedAt)):
		return MayLand
	case l.historyTooShort(blockhashSlot):
		return Forgotten
	default:
		return Expired
	}
}

// expired reports whether every blockhash that existed at the given time has expired.
func (l *SearchResult) expired(at time.Time) bool {
	return !at.IsZero() && at.Add(clockTolerance).Before(l.ExpiredBefore)
}
