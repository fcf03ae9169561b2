package verify

import (
	"fmt"
	"time"
)

// onlyKnownSigned checks invariant 3, write before send, against the chain.
func onlyKnownSigned(e *Evidence, r *Result) {
	x := newIndex(e)
	for i := range e.Transactions {
		tx := &e.Transactions[i]
		if !x.payers[tx.Payer] {
			continue
		}
		r.Examined++
		if x.attempts[tx.Signature] == nil {
			r.fault("transaction %s of payer %s landed in slot %d, and the database has no attempt of that signature", tx.Signature, tx.Payer, tx.Slot)
		}
	}
}

func clock(t time.Time) string {
	if t.IsZero() {
		return "no time"
	}
	return fmt.Sprintf("%s UTC", t.UTC().Format("15:04:05.000"))
}
