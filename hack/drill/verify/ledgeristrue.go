package verify

import "github.com/gagliardetto/solana-go"

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
