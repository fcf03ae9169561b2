package spending

import (
	"cmp"
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
)

// track is how one payer's history is being read: a walk from the newest
// transaction back to the cursor, and then what it listed, oldest first.
type track struct {
	payer solana.PublicKey

	walking, listed bool
	// began is when the walk began: all that was finalized then is in it.
	began  time.Time
	before solana.Signature
	// empty counts pages in a row without a transaction.
	empty int
	// found is newest first during the walk, oldest first after it.
	found []onchain.SignatureInfo
	// cut says that the newest were dropped, to be listed again later.
	cut bool

	// since is when history was first found not to add up; zero while it does.
	since time.Time
}

// walk takes a page and tells whether the walk is over.
func (t *track) walk(page []onchain.SignatureInfo, cursor *Cursor) (over bool) {
	for _, info := range page {
		if cursor != nil && info.Slot <= cursor.Slot {
			over = true // an endpoint that does not know the cursor's signature goes on beyond it
			break
		}
		t.found = append(t.found, info)
	}
	if len(page) > 0 {
		t.before, t.empty = page[len(page)-1].Signature, 0
	} else {
		t.empty++
	}
	// Without a cursor the walk ends where history does, and one endpoint that
	// does not know the signature to start before must not be taken for that end.
	// With one, a gap shows what an early end leaves out.
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

// bound drops the newest half when too many are held, whole slots of it.
func (t *track) bound() {
	if len(t.found) <= maxListed {
		return
	}
	n := len(t.found) - maxListed/2
	for n < len(t.found) && t.found[n].Slot == t.found[n-1].Slot {
		n++
	}
	t.found, t.cut = slices.Clone(t.found[n:]), true
}

// due gives the next slots after the cursor, whole ones, with at most limit
// transactions unless the first has more.
func (t *track) due(cursor *Cursor, limit int) []slot {
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

func (t *track) drop(upTo uint64) {
	n, _ := slices.BinarySearchFunc(t.found, upTo+1, func(info onchain.SignatureInfo, slot uint64) int { return cmp.Compare(info.Slot, slot) })
	t.found = t.found[n:]
}

// keep drops what has been added up, and tells whether that was all there is.
// When it was, or when history has to be listed again, the next pass walks anew.
func (t *track) keep(b *balance, readAll bool) (done bool) {
	t.drop(b.upTo)
	done = readAll && b.doubt == "" && len(t.found) == 0 && !t.cut
	if b.doubt != "" || len(t.found) == 0 {
		t.restart()
	}
	return done
}

// restart makes the next pass list history again.
func (t *track) restart() { t.listed, t.walking = false, false }

// waitedTooLong tells whether history has not added up for long enough to go on
// without what is missing.
func (t *track) waitedTooLong(now time.Time, patience time.Duration) bool {
	return !t.since.IsZero() && now.Sub(t.since) >= patience
}
