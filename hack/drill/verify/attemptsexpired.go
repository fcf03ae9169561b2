package verify

import (
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"
)

// earlierAttemptsExpired checks invariant 4 as far as it can be observed afterwards: when an attempt was
// committed, no earlier attempt of its submission could still land. It uses the chain's
// heights, because a blockhash's height in the database may be wrong.
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
			for _, earlier := range all[:i] {
				r.Examined++
				finalized := finalizedAfter(e, later.CreatedAt)
				height, known := e.Heights[earlier.Blockhash]
				switch tx := x.landed[earlier.Signature]; {
				case finalized == nil || !known: // an abandoned fork's blockhash, or no observation
					r.Undecided++
				case tx != nil && tx.Failed && tx.Slot <= finalized.Slot:
				case finalized.Height < height+blockhashLife:
					r.fault("request %s: attempt %s was committed at %s, when finality was at height %d, and attempt %s could land until height %d", submission, later.Signature, clock(later.CreatedAt), finalized.Height, earlier.Signature, height+blockhashLife)
				}
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
