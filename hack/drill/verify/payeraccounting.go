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

// payersPayRent checks each transaction's cost by the purpose that the database
// records: no answer of a router may make a payer lose more lamports.
func payersPayRent(e *Evidence, r *Result) {
	x, swaps, rates := newIndex(e), swapsOf(e), map[shieldpool.Rent]bool{}
	for i := range e.Transactions {
		rates[e.Transactions[i].Rent] = true
	}
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
		if want, ok := tx.rent(attempt.Purpose, swaps, rates); !ok || spent != want {
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

// rent returns what a transaction should cost its payer in addition to the fee, or false
// when its instructions do not match its purpose. rates are those that the chain had.
func (tx *Transaction) rent(purpose string, swaps map[solana.PublicKey]*swap, rates map[shieldpool.Rent]bool) (lamports int64, ok bool) {
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
		return tx.executionRent(&tx.Ends[0], swapped.leg, rates)
	case purpose == "refund" && len(tx.Ends) == 1 && tx.Ends[0].How == shieldpool.Refunded:
		return 0, true
	}
	return 0, false
}

// executionRent returns the rent of an execution. The execution returns the rent of the
// state, and of each of the state's two token accounts that existed before, whoever created
// it, and at whichever rate. The execution can create the recipient's account. Before it, the
// net lamports of the swap can have been wrapped.
func (tx *Transaction) executionRent(s *SwapEnd, leg *Transaction, rates map[shieldpool.Rent]bool) (lamports int64, ok bool) {
	stateRent := leg.rentOf(shieldpool.NewAccounts{SwapStates: 1})
	net := leg.Changes[s.State] - stateRent
	created, wrapped, output := tx.Changes[s.Recipient], tx.Changes[s.State]+tx.Changes[s.WSOL]+net+stateRent, tx.Changes[s.Output]
	lamports = created + wrapped + output - stateRent
	account := shieldpool.NewAccounts{TokenAccounts: 1}
	closed := func(change int64) bool {
		for rate := range rates {
			if change == -int64(account.Rent(rate)) { //nolint:gosec // far below 2^63 lamports exist
				return true
			}
		}
		return change == 0
	}
	return lamports, (created == 0 || created == tx.rentOf(account)) && closed(wrapped) && closed(output)
}

// rentOf is what accounts cost at the rate of the transaction's slot.
func (tx *Transaction) rentOf(n shieldpool.NewAccounts) int64 {
	return int64(n.Rent(tx.Rent)) //nolint:gosec // far below 2^63 lamports exist
}
