package onchain

import "time"

// clockTolerance is the greatest difference between the clocks of the process that signed a
// transaction and the one that reads the chain.
const clockTolerance = 30 * time.Second

// Fate is what one search of the chain shows about one signed transaction.
type Fate int

// The values of Fate.
const (
	// MayLand: it may still land.
	MayLand Fate = iota
	// Landed: it is at least confirmed, and succeeded.
	Landed
	// FailedOnChain: it landed with an error, and that is final.
	FailedOnChain
	// Expired: it is not on the chain and can never be.
	Expired
	// Forgotten: it cannot land any more, but the endpoint's history is too short to show
	// whether it has landed.
	Forgotten
)

// Fate is the only place that decides whether a signed transaction has expired. st is its status
// in the search, nil for none. Its blockhash was read at blockhashSlot and expires after
// lastValidBlockHeight. A failure on the chain counts once it is finalized, because the
// same bytes can succeed on another fork. An unknown signature proves expiry only when
// the history goes back to the transaction and the finalized height is past its last valid
// height. That height was recorded at signing and may be wrong. The transaction has therefore
// also expired once all blockhashes up to blockhashSlot have expired. That slot may be wrong
// too, so the transaction has also expired once every blockhash that existed at signing has
// expired.
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
	case l.FirstAvailable > blockhashSlot:
		return Forgotten
	default:
		return Expired
	}
}

// expired reports whether every blockhash that existed at the time has expired.
func (l *SearchResult) expired(at time.Time) bool {
	return !at.IsZero() && at.Add(clockTolerance).Before(l.ExpiredAt)
}
