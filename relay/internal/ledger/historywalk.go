package ledger

import (
	"cmp"
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
)

// payerHistory is the state of reading one payer's history: first a walk from the newest
// transaction back to the cursor, and then the listed signatures, oldest first.
type payerHistory struct {
	payer solana.PublicKey

	walking, listed bool
	// startedAt is when the walk started: it covers everything that was finalized then.
	startedAt time.Time
	before    solana.Signature
	// empty counts pages in a row without a transaction.
	empty int
	// found is newest first during the walk, oldest first after it.
	found []onchain.SignatureInfo
	// truncated reports that the newest signatures were dropped, and have to be listed again.
	truncated bool

	// gapSince is when a gap was first found; zero without one.
	gapSince time.Time
}

// walk adds a page, and reports whether the walk has ended.
func (t *payerHistory) walk(page []onchain.SignatureInfo, cursor *Cursor) (over bool) {
	for _, info := range page {
		if cursor != nil && info.Slot <= cursor.Slot {
			over = true // an endpoint that does not know the cursor's signature lists beyond it
			break
		}
		t.found = append(t.found, info)
	}
	if len(page) > 0 {
		t.before, t.empty = page[len(page)-1].Signature, 0
	} else {
		t.empty++
	}
	// Without a cursor the walk ends where history does. An endpoint that does not know the
	// signature to start before must not count as that end. With a cursor, a gap shows what
	// an early end omits.
	if cursor != nil {
		over = over || len(page) < pageSize
	} else {
		over = t.empty > 1
	}
	t.bound()
	if over {
		slices.Reverse(t.found)
		slices.SortStableFunc(t.found, func(a, b onchain.SignatureInfo) int { return cmp.Compare(a.Slot, b.Slot) })
		t.walking, t.listed = false, true
	}
	return over
}

// bound drops the newest half, in whole slots, when too many are kept.
func (t *payerHistory) bound() {
	if len(t.found) <= maxListed {
		return
	}
	n := len(t.found) - maxListed/2
	for n < len(t.found) && t.found[n].Slot == t.found[n-1].Slot {
		n++
	}
	t.found, t.truncated = slices.Clone(t.found[n:]), true
}

// due returns the next whole slots after the cursor, with at most limit transactions unless
// the first slot has more.
func (t *payerHistory) due(cursor *Cursor, limit int) []slot {
	if cursor != nil {
		t.drop(cursor.Slot) // another process may have read them
	}
	var slots []slot
	for i, n := 0, 0; i < len(t.found); {
		s := slot{number: t.found[i].Slot}
		for ; i < len(t.found) && t.found[i].Slot == s.number; i++ {
			if !slices.Contains(s.signatures, t.found[i].Signature) { // endpoints' pages may overlap
				s.signatures = append(s.signatures, t.found[i].Signature)
			}
		}
		if n += len(s.signatures); n > limit && len(slots) > 0 {
			break
		}
		slots = append(slots, s)
	}
	return slots
}

func (t *payerHistory) drop(upTo uint64) {
	n, _ := slices.BinarySearchFunc(t.found, upTo+1, func(info onchain.SignatureInfo, slot uint64) int { return cmp.Compare(info.Slot, slot) })
	t.found = t.found[n:]
}

// keep drops the added signatures, and reports whether all were added. If so, or if history
// has to be listed again, the next pass starts a new walk.
func (t *payerHistory) keep(b *balance, readAll bool) (done bool) {
	t.drop(b.upTo)
	done = readAll && b.problem == "" && len(t.found) == 0 && !t.truncated
	if b.problem != "" || len(t.found) == 0 {
		t.restart()
	}
	return done
}

// restart makes the next pass list history again.
func (t *payerHistory) restart() { t.listed, t.walking = false, false }
