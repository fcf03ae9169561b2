package verify

import (
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"
)

// maxEarlyFees is the relays' default: the most that a submission's attempts may cost in vain, in
// lamports, because some were signed before the earlier ones were dead. maxLive is how many may land.
const maxEarlyFees, maxLive = 50_000, 3

// earlierAttemptsExpired checks invariant 4 as far as it can be observed afterwards: when an attempt was
// committed, no earlier attempt of its submission could still land, except for a few that pay less and
// whose fees stay within maxEarlyFees. It uses the chain's heights, because a blockhash's height in the database may be
// wrong.
func earlierAttemptsExpired(e *Evidence, r *Result) {
	x := newIndex(e)
	attempts := make(map[uuid.UUID][]*Attempt)
	for i := range e.Attempts {
		if a := &e.Attempts[i]; a.Purpose == purposeTransact {
			attempts[a.Submission] = append(attempts[a.Submission], a)
		}
	}
	for submission, all := range attempts {
		slices.SortFunc(all, func(a, b *Attempt) int { return a.CreatedAt.Compare(b.CreatedAt) })
		for i, later := range all {
			finalized := finalizedAfter(e, later.CreatedAt)
			var live *Attempt
			n, sum, lowest, paysMore := 1, later.Fee, later.Fee, true
			for _, earlier := range all[:i] {
				r.Examined++
				height, known := e.Heights[earlier.Blockhash]
				switch tx := x.landed[earlier.Signature]; {
				case finalized == nil || !known: // an abandoned fork's blockhash, or no observation
					r.Undecided++
				case tx != nil && tx.Failed && tx.Slot <= finalized.Slot:
				case finalized.Height < height+blockhashLife:
					live, paysMore = earlier, paysMore && later.Fee > earlier.Fee
					n, sum, lowest = n+1, sum+earlier.Fee, min(lowest, earlier.Fee)
				}
			}
			if live != nil && (n > maxLive || sum-lowest > maxEarlyFees || !paysMore) {
				r.fault("request %s: attempt %s was committed at %s, when finality was at height %d, and attempt %s could land until height %d: %d attempts, %d lamports in vain, pays more: %t",
					submission, later.Signature, clock(later.CreatedAt), finalized.Height, live.Signature, e.Heights[live.Blockhash]+blockhashLife, n, sum-lowest, paysMore)
			}
		}
	}
}

// finalizedAfter returns the first observation of finality after the moment. It bounds the height
// that was finalized at that time.
func finalizedAfter(e *Evidence, moment time.Time) *Finality {
	i, _ := slices.BinarySearchFunc(e.Finality, moment, func(f Finality, moment time.Time) int { return f.At.Compare(moment) })
	if i == len(e.Finality) {
		return nil
	}
	return &e.Finality[i]
}

// Finality is the finalized slot and height at a time.
type Finality struct {
	At           time.Time
	Slot, Height uint64
}

// Heights are the block heights of blockhashes.
type Heights map[solana.Hash]uint64

// blockhashLife is the number of blocks for which a blockhash is valid.
const blockhashLife = 150
