package ledger

import (
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// accumulator adds up slots in order, starting at the cursor. The payer's balance
// before a slot must equal the balance after the previous slot.
type accumulator struct {
	payer    solana.PublicKey
	now      time.Time
	rent     shieldpool.Rent
	attempts map[solana.Signature]Attempt
	// acceptGap skips a gap in the history instead of stopping at it.
	acceptGap bool

	cursor   *Cursor // nil until there is a first slot
	entries  []Entry
	gaps     []gap
	lastSlot uint64 // the last slot that was added or skipped
	gapless  bool   // no history was missing in or before the last slot
	// problem is the reason for which no more slots are added. It is problemMissing or problemGap.
	problem     string
	problemSlot uint64
}

// start sets the cursor from which slots are added; nil for a payer without a cursor.
func (b *accumulator) start(cursor *Cursor) {
	if cursor != nil {
		c := *cursor
		b.cursor, b.lastSlot = &c, c.Slot
	}
}

// add adds one slot, or sets problem if history is missing and gaps are not accepted.
func (b *accumulator) add(s slot) {
	var found []*onchain.Payment
	for _, p := range s.payments {
		if p != nil {
			found = append(found, p)
		}
	}
	first := b.cursor == nil
	opening, closing, consistent := slotBalances(found, b.cursor)
	if !b.checkGap(s, len(found), consistent) {
		return
	}
	if first {
		b.cursor = &Cursor{Payer: b.payer, Opening: opening, BalanceAfter: opening}
	}
	expected := int64(b.cursor.BalanceAfter) //nolint:gosec // any sum of lamports fits 63 bits
	for _, p := range found {
		expected -= b.addEntry(p)
	}
	if missing := int64(closing) - expected; missing != 0 { //nolint:gosec // as above
		b.addGap(s.number, missing)
	}
	b.cursor.Signature, b.cursor.Slot, b.cursor.BalanceAfter = s.signatures[len(s.signatures)-1], s.number, closing
	b.lastSlot = s.number
}

// addEntry adds the entry of a payment, and returns how much the payer lost.
func (b *accumulator) addEntry(p *onchain.Payment) (lost int64) {
	var attempt *Attempt
	if a, ok := b.attempts[p.Signature]; ok {
		attempt = &a
	}
	e, ok := newEntry(p, b.payer, attempt, b.rent, b.now)
	if !ok {
		return 0
	}
	b.entries = append(b.entries, e)
	return e.Net()
}

// slotBalances finds the balances before and after a slot from its payments, whose order is
// unknown: each payment except the first starts at the balance at which another payment ends.
// consistent is true if the payments form such a chain, and if the chain starts at the cursor's
// balance. If consistent is false, closing is a guess.
func slotBalances(payments []*onchain.Payment, cursor *Cursor) (opening, closing uint64, consistent bool) {
	if len(payments) == 0 {
		return 0, 0, false
	}
	unmatched := map[uint64]int{}
	startsAtCursor := false // one payment starts at the cursor's balance
	for _, p := range payments {
		unmatched[p.Before]++
		unmatched[p.After]--
		startsAtCursor = startsAtCursor || cursor != nil && p.Before == cursor.BalanceAfter
	}
	firsts, lasts := 0, 0
	for lamports, n := range unmatched {
		switch {
		case n > 0:
			firsts, opening = firsts+n, lamports
		case n < 0:
			lasts, closing = lasts-n, lamports
		}
	}
	switch {
	case firsts == 0 && startsAtCursor: // the slot's payments cancel out
		return cursor.BalanceAfter, cursor.BalanceAfter, true
	case firsts == 0:
		return payments[0].Before, payments[0].Before, cursor == nil
	case firsts == 1 && lasts == 1:
		return opening, closing, cursor == nil || opening == cursor.BalanceAfter
	default:
		return payments[0].Before, payments[len(payments)-1].After, false
	}
}
