package ledger

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
)

// maxListed bounds the signatures in memory, to some 16 MB.
const maxListed = 200_000

// payerHistory is the state of reading one payer's history. Reading starts with a walk, which
// lists the signatures from the newest transaction back to the cursor. Then the listed
// transactions are read, the oldest first.
type payerHistory struct {
	payer solana.PublicKey

	// walking is true during the walk. listed is true once it has ended.
	walking, listed bool
	// startedAt is when the walk started. The walk lists everything that was finalized by then.
	startedAt  time.Time
	pageBefore solana.Signature
	// emptyPages counts pages in a row without a transaction.
	emptyPages int
	// signatures is newest first during the walk, oldest first after it.
	signatures []onchain.SignatureInfo
	// truncated is true if the newest signatures were dropped, and have to be listed again.
	truncated bool

	// gapSince is when the present gap was found, in gapSlot or before it; zero while there is no gap.
	gapSince time.Time
	gapSlot  uint64
	// writtenTo is the slot of the cursor that this process has written last.
	writtenTo uint64
}

// listHistory lists the payer's transactions from the newest back to the cursor. This may take
// several passes. It returns true once the list is complete.
func (r *Reconciler) listHistory(ctx context.Context, h *payerHistory, cursor *Cursor) (listed bool, err error) {
	if h.listed {
		return true, nil
	}
	if !h.walking {
		*h = payerHistory{payer: h.payer, gapSince: h.gapSince, gapSlot: h.gapSlot, writtenTo: h.writtenTo, walking: true, startedAt: r.Now()}
	}
	var until solana.Signature
	if cursor != nil {
		until = cursor.Signature
	}
	for range pagesPerPass {
		page, err := r.Chain.SignaturesFor(ctx, h.payer, onchain.Finalized, h.pageBefore, until, pageSize)
		if err != nil {
			return false, err
		}
		if h.addPage(page, cursor) {
			return true, nil
		}
	}
	return false, nil
}

// addPage adds a page of signatures to the list, and reports whether the walk has ended.
func (h *payerHistory) addPage(page []onchain.SignatureInfo, cursor *Cursor) (ended bool) {
	for _, info := range page {
		if cursor != nil && info.Slot <= cursor.Slot {
			ended = true // an endpoint that does not know the cursor's signature lists beyond it
			break
		}
		h.signatures = append(h.signatures, info)
	}
	if len(page) > 0 {
		h.pageBefore, h.emptyPages = page[len(page)-1].Signature, 0
	} else {
		h.emptyPages++
	}
	// Without a cursor, the walk ends where the history ends: after two empty pages,
	// because an endpoint that does not know pageBefore also returns an empty page.
	// With a cursor, a walk that ends too early shows as a gap.
	if cursor != nil {
		ended = ended || len(page) < pageSize
	} else {
		ended = h.emptyPages > 1
	}
	h.truncate()
	if ended {
		slices.Reverse(h.signatures)
		slices.SortStableFunc(h.signatures, func(a, b onchain.SignatureInfo) int { return cmp.Compare(a.Slot, b.Slot) })
		h.walking, h.listed = false, true
	}
	return ended
}

// truncate drops the newest half of the signatures, in whole slots, when there are more than
// maxListed. The oldest are kept, because they are read first.
func (h *payerHistory) truncate() {
	if len(h.signatures) <= maxListed {
		return
	}
	n := len(h.signatures) - maxListed/2
	for n < len(h.signatures) && h.signatures[n].Slot == h.signatures[n-1].Slot {
		n++
	}
	h.signatures, h.truncated = slices.Clone(h.signatures[n:]), true
}

// nextSlots returns the next whole slots after the cursor, with at most limit transactions unless
// the first slot has more.
func (h *payerHistory) nextSlots(cursor *Cursor, limit int) []slot {
	if cursor != nil {
		h.dropThrough(cursor.Slot) // another process may have added these slots
	}
	var slots []slot
	for i, n := 0, 0; i < len(h.signatures); {
		s := slot{number: h.signatures[i].Slot}
		for ; i < len(h.signatures) && h.signatures[i].Slot == s.number; i++ {
			if !slices.Contains(s.signatures, h.signatures[i].Signature) { // endpoints' pages may overlap
				s.signatures = append(s.signatures, h.signatures[i].Signature)
			}
		}
		if n += len(s.signatures); n > limit && len(slots) > 0 {
			break
		}
		slots = append(slots, s)
	}
	return slots
}

func (h *payerHistory) dropThrough(lastSlot uint64) {
	n, _ := slices.BinarySearchFunc(h.signatures, lastSlot+1, func(info onchain.SignatureInfo, slot uint64) int { return cmp.Compare(info.Slot, slot) })
	h.signatures = h.signatures[n:]
}

// finishStep drops the signatures of slots that were added or skipped. It reports whether the whole
// history has been read. stepRead says whether all payments of the step could be read. The next
// pass starts a new walk if no signatures remain, or if there was a problem.
func (h *payerHistory) finishStep(b *accumulator, stepRead bool) (done bool) {
	h.dropThrough(b.lastSlot)
	done = stepRead && b.problem == "" && len(h.signatures) == 0 && !h.truncated
	if b.problem != "" || len(h.signatures) == 0 {
		h.restart()
	}
	return done
}

// restart makes the next pass list history again.
func (h *payerHistory) restart() { h.listed, h.walking = false, false }
