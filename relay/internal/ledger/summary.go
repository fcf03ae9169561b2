package ledger

import "time"

// Summary summarises the ledger for metrics and health.
type Summary struct {
	// Today is the sum since midnight UTC. Total is the sum of all days.
	Today, Total Amounts
	// Unknown counts transactions that a payer's key signed and that the database does not
	// contain.
	Unknown uint64
	// Gaps counts places where history is missing.
	Gaps uint64
	// Unexplained is the cost of the relay's transactions beyond fee and rent, plus the part of
	// the balances that the sums do not explain. That part is 0 unless rows were changed by
	// hand.
	Unexplained int64
	// OldestCheck is the oldest CheckedAt of the payers' cursors; zero when the history of at
	// least one payer has never been read completely.
	OldestCheck time.Time
}

// Summary sums up the ledger. The Days of l must contain only today.
func (l *Snapshot) Summary() Summary {
	var f Summary
	for _, s := range l.Days {
		f.Today = f.Today.plus(s.Amounts)
	}
	for _, s := range l.Totals {
		f.Total = f.Total.plus(s.Amounts)
		if s.Kind == KindUnknown {
			f.Unknown += s.Transactions
		} else {
			f.Unexplained += s.Other
		}
	}
	for i, p := range l.payers() {
		f.Gaps += p.Gaps
		f.Unexplained += p.Unexplained
		if checked := l.Cursors[i].CheckedAt; i == 0 || checked.Before(f.OldestCheck) {
			f.OldestCheck = checked
		}
	}
	return f
}
