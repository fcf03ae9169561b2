package onchain

import "time"

// clockTolerance is how far the clocks may be apart by which a transaction was signed and
// the chain was looked at.
const clockTolerance = 30 * time.Second

// Fate is what one look at the chain says about one signed transaction.
type Fate int

// The fates.
const (
	MayLand Fate = iota
	// Landed: it is confirmed at least, and succeeded.
	Landed
	// FailedOnChain: it landed with an error, and that is final.
	FailedOnChain
	// Expired: it is not on the chain and can never be.
	Expired
	// Forgotten: it cannot land any more, and the endpoint's history is too short
	// to tell whether it has.
	Forgotten
)

// Fate is the one place that decides whether a signed transaction is dead. st is
// the look's status of it, nil for none; its blockhash was read at blockhashSlot
// and dies after lastValidBlockHeight. Failure on the chain counts once it is
// finalized, because the same bytes can succeed on another fork. Absence counts
// only when the history reaches back to the transaction and the finalized height is
// past its last one. The last height was recorded when it was signed; if that was
// wrong, the transaction ends with the slot of its blockhash, and if that was wrong,
// too, with the blockhashes that there were when it was signed.
func (l *Look) Fate(st *Status, blockhashSlot, lastValidBlockHeight uint64, signed time.Time) Fate {
	switch {
	case st != nil && st.Unverified:
		return MayLand
	case st != nil && st.Err == nil && st.Confirmation.AtLeast(Confirmed):
		return Landed
	case st != nil && st.Err != nil && st.Confirmation.AtLeast(Finalized):
		return FailedOnChain
	case st != nil || (l.FinalizedHeight <= lastValidBlockHeight && l.ExpiredSlot < max(blockhashSlot, 1) && !l.expired(signed)):
		return MayLand
	case l.FirstAvailable > blockhashSlot:
		return Forgotten
	default:
		return Expired
	}
}

// expired reports whether every blockhash is over that there was at the time.
func (l *Look) expired(at time.Time) bool {
	return !at.IsZero() && at.Add(clockTolerance).Before(l.ExpiredAt)
}
