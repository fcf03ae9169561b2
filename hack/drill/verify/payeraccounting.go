package verify

import (
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// lamportsAccounted computes each payer's balance from the blocks and compares it
// with the real one.
func lamportsAccounted(e *Evidence, r *Result) {
	x := newIndex(e)
	changes := make(map[solana.PublicKey]int64)
	for i := range e.Transactions {
		tx := &e.Transactions[i]
		if !x.payers[tx.Payer] {
			continue // Funded has the changes by other people's transactions
		}
		r.Examined++
		// Only a move may change another payer; payersPayRent checks that.
		for _, p := range e.Payers {
			changes[p.Key] += tx.Changes[p.Key]
		}
	}
	for _, p := range e.Payers {
		want := int64(p.Opening) + int64(p.Funded) + changes[p.Key] //nolint:gosec // far below 2^63 lamports exist
		if int64(p.Closing) != want {                               //nolint:gosec // as above
			r.fault("payer %s holds %d lamports, expected %d: opening %d, funded %d, its landed transactions %+d", p.Key, p.Closing, want, p.Opening, p.Funded, changes[p.Key])
		}
	}
}

// ledgerIsTrue compares the relays' ledger with the blocks, line by line and in
// total.
func ledgerIsTrue(e *Evidence, r *Result) {
	x := newIndex(e)
	// The ledger has one line of a move for each payer whose balance the move changed.
	type line struct {
		signature solana.Signature
		payer     solana.PublicKey
	}
	entries := make(map[line]*Entry, len(e.Entries))
	if e.LedgerFault != "" {
		r.fault("relay ledger reports: %s", e.LedgerFault)
	}
	received := make(map[solana.PublicKey]int64)
	for i := range e.Entries {
		entry := &e.Entries[i]
		if entry.Kind == "received" {
			received[entry.Payer] += entry.Received
			continue
		}
		r.Examined++
		if entries[line{entry.Signature, entry.Payer}] != nil {
			r.fault("the ledger has %s twice", entry.Signature)
		}
		entries[line{entry.Signature, entry.Payer}] = entry
		switch tx := x.landed[entry.Signature]; {
		case tx == nil || tx.Payer != entry.Payer && entry.Kind != "sweep":
			r.fault("the ledger has %s of payer %s, which the finalized chain does not have", entry.Signature, entry.Payer)
		case tx.Payer != entry.Payer && tx.Changes[entry.Payer] != -entry.Moved:
			r.fault("the ledger says that %s brought payer %s %d lamports; the chain says %d", entry.Signature, entry.Payer, -entry.Moved, tx.Changes[entry.Payer])
		}
		if entry.Other != 0 {
			r.fault("the ledger leaves %d lamports of %s unexplained", entry.Other, entry.Signature)
		}
	}
	for _, p := range e.Payers {
		// The balance before the ledger's first transaction counts as received.
		got := int64(p.LedgerOpening) + received[p.Key]              //nolint:gosec // far below 2^63 lamports exist
		if want := int64(p.Opening) + int64(p.Funded); got != want { //nolint:gosec // as above
			r.fault("the ledger says that payer %s opened with and received %d lamports, expected %d", p.Key, got, want)
		}
	}
	for i := range e.Transactions {
		tx := &e.Transactions[i]
		if !x.payers[tx.Payer] {
			continue
		}
		for _, p := range e.Payers {
			if p.Key != tx.Payer && tx.Changes[p.Key] != 0 && entries[line{tx.Signature, p.Key}] == nil {
				r.fault("the ledger does not have the change that %s, slot %d, made to payer %s", tx.Signature, tx.Slot, p.Key)
			}
		}
		entry := entries[line{tx.Signature, tx.Payer}]
		if entry == nil {
			r.fault("the ledger does not have %s of payer %s, slot %d", tx.Signature, tx.Payer, tx.Slot)
			continue
		}
		entry.compare(tx, r)
	}
}

func (entry *Entry) compare(tx *Transaction, r *Result) {
	fee, signature := int64(tx.Fee), int64(tx.SignatureFee) //nolint:gosec // fees are small
	spent := -tx.Changes[tx.Payer]
	// An execution returns the rent, together with lamports that others sent to the closed
	// accounts.
	rent := entry.Rent + entry.Moved - entry.Received
	if entry.Fee != signature || entry.Priority != fee-signature || rent != spent-fee {
		r.fault("the ledger says of %s: fee %d, priority fee %d, rent %d; the chain says %d, %d, %d", tx.Signature,
			entry.Fee, entry.Priority, rent, signature, fee-signature, spent-fee)
	}
}

// payersPayRent checks each transaction's cost by the purpose that the database
// records: no answer of a router may make a payer lose more lamports.
func payersPayRent(e *Evidence, r *Result) {
	x, swaps := newIndex(e), swapsOf(e)
	for i := range e.Transactions {
		tx := &e.Transactions[i]
		attempt := x.attempts[tx.Signature]
		if attempt == nil || !x.payers[tx.Payer] {
			continue // onlyKnownSigned reports transactions of the relays without an attempt
		}
		r.Examined++
		spent := -tx.Changes[tx.Payer] - int64(tx.Fee) //nolint:gosec // fees are small
		if attempt.Purpose == PurposeMove {
			tx.checkMove(attempt, e.Payers, spent, r)
			continue
		}
		if want, ok := tx.rent(attempt.Purpose, swaps); !ok || spent != want {
			r.fault("transaction %s, purpose %s, took %d lamports of rent from its payer, expected %d", tx.Signature, attempt.Purpose, spent, want)
		}
		for _, p := range e.Payers {
			if other := tx.Changes[p.Key]; p.Key != tx.Payer && other != 0 {
				r.fault("transaction %s of payer %s changed payer %s by %d lamports", tx.Signature, tx.Payer, p.Key, other)
			}
		}
	}
}

// checkMove compares a move with the amounts recorded before it was sent: it takes
// the sum that the other payers get, and no lamport more.
func (tx *Transaction) checkMove(attempt *Attempt, payers []Payer, spent int64, r *Result) {
	var want int64
	for _, p := range payers {
		got, due := tx.Changes[p.Key], int64(attempt.Moves[p.Key]) //nolint:gosec // far below 2^63 lamports exist
		if tx.Failed {
			due = 0
		}
		want += due
		if p.Key != tx.Payer && got != due {
			r.fault("transaction %s, purpose move, brought payer %s %d lamports, expected %d", tx.Signature, p.Key, got, due)
		}
	}
	if spent != want {
		r.fault("transaction %s, purpose move, took %d lamports from payer %s, expected %d", tx.Signature, spent, tx.Payer, want)
	}
	if len(tx.Calls)+len(tx.Ends) > 0 {
		r.fault("transaction %s, purpose move, calls the pool", tx.Signature)
	}
}

// rent returns what a transaction should cost its payer in addition to the fee; false when
// its instructions do not match its purpose.
func (tx *Transaction) rent(purpose string, swaps map[solana.PublicKey]*swap) (lamports int64, ok bool) {
	if tx.Failed {
		return 0, true
	}
	switch {
	case purpose == "transact" && len(tx.Calls) == 1:
		call := shieldpool.Call{Inputs: &tx.Calls[0].Inputs, Destination: shieldpool.Destination{Swap: tx.Calls[0].Swap}}
		return tx.rentOf(call.NewAccounts()), true
	case purpose == "execute" && len(tx.Ends) == 1 && tx.Ends[0].How == shieldpool.Executed:
		swapped := swaps[tx.Ends[0].State]
		if swapped == nil {
			return 0, false
		}
		return tx.executionRent(&tx.Ends[0], swapped.leg)
	case purpose == "refund" && len(tx.Ends) == 1 && tx.Ends[0].How == shieldpool.Refunded:
		return 0, true
	}
	return 0, false
}

// executionRent returns the rent of an execution. The execution returns the rent of the
// state, and of each of the state's two token accounts that existed before, whoever created
// it. It may create the recipient's account. The net lamports that are swapped may have
// been wrapped before.
func (tx *Transaction) executionRent(s *SwapEnd, leg *Transaction) (lamports int64, ok bool) {
	stateRent := leg.rentOf(shieldpool.NewAccounts{SwapStates: 1})
	net := leg.Changes[s.State] - stateRent
	created, wrapped, output := tx.Changes[s.Recipient], tx.Changes[s.State]+tx.Changes[s.WSOL]+net+stateRent, tx.Changes[s.Output]
	lamports = created + wrapped + output - stateRent
	account := shieldpool.NewAccounts{TokenAccounts: 1}
	now, then := tx.rentOf(account), leg.rentOf(account)
	closed := func(change int64) bool { return change == 0 || change == -now || change == -then }
	return lamports, (created == 0 || created == now) && closed(wrapped) && closed(output)
}

// rentOf is what accounts cost at the rate of the transaction's slot.
func (tx *Transaction) rentOf(n shieldpool.NewAccounts) int64 {
	return int64(n.Rent(tx.Rent)) //nolint:gosec // far below 2^63 lamports exist
}
