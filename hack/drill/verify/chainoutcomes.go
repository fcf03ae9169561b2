package verify

import (
	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"
)

// outcomeIsTrue checks invariant 4 from the outcome: the database records the
// outcome that the chain has.
func outcomeIsTrue(e *Evidence, r *Result) {
	x := newIndex(e)
	attempts := make(map[uuid.UUID][]solana.Signature)
	for i := range e.Attempts {
		attempts[e.Attempts[i].Submission] = append(attempts[e.Attempts[i].Submission], e.Attempts[i].Signature)
	}
	spenders := spendersOf(e)
	for i := range e.Submissions {
		s := &e.Submissions[i]
		switch s.State {
		case "completed":
			r.Examined++
			x.completed(s, r)
		case "failed":
			r.Examined++
			x.failed(s, attempts[s.ID], spenders, r)
		}
	}
}

func (x *index) completed(s *Submission, r *Result) {
	tx := x.landed[s.Signature]
	attempt := x.attempts[s.Signature]
	switch {
	case tx == nil:
		r.fault("request %s is completed with %s, which the finalized chain does not have", s.ID, s.Signature)
		return
	case tx.Failed:
		r.fault("request %s is completed with %s, which failed on the chain in slot %d", s.ID, s.Signature, tx.Slot)
	case attempt == nil || attempt.Submission != s.ID:
		r.fault("request %s is completed with %s, which is not an attempt of this request", s.ID, s.Signature)
	}
	if len(tx.Calls) != 1 {
		r.fault("request %s: transaction %s calls the pool %d times, expected once", s.ID, s.Signature, len(tx.Calls))
		return
	}
	call := &tx.Calls[0]
	if call.Inputs != s.Inputs {
		r.fault("request %s: transaction %s has other public inputs", s.ID, s.Signature)
	}
	switch {
	case (s.Swap == nil) != (call.Swap == nil) || s.Swap != nil && *s.Swap != *call.Swap:
		r.fault("request %s: transaction %s has other terms of a swap", s.ID, s.Signature)
	case s.Swap == nil && s.Inputs.PublicAmount < 0 && call.Recipient != s.Recipient:
		r.fault("request %s: transaction %s pays another recipient", s.ID, s.Signature)
	}
}

func (x *index) failed(s *Submission, attempts []solana.Signature, spenders map[[32]byte][]*Transaction, r *Result) {
	for _, signature := range attempts {
		if tx := x.landed[signature]; tx != nil && !tx.Failed {
			r.fault("request %s failed with %s, but its attempt %s landed in slot %d", s.ID, s.Code, signature, tx.Slot)
		}
	}
	spent := false
	for i := range s.Inputs.Nullifiers {
		for _, tx := range spenders[s.Inputs.Nullifiers[i]] {
			spent = true
			// The loop above checks attempts that the database knows; this transaction
			// belongs to none.
			if tx.Calls[0].Inputs == s.Inputs && x.payers[tx.Payer] && x.attempts[tx.Signature] == nil {
				r.fault("request %s failed with %s, but transaction %s, of a relay's payer and with its public inputs, landed in slot %d", s.ID, s.Code, tx.Signature, tx.Slot)
			}
		}
	}
	if s.Code == "nullifier_spent" && !spent {
		r.fault("request %s failed with nullifier_spent, but no finalized transaction spends one of its nullifiers", s.ID)
	}
}

// spendersOf lists the successful transactions by the nullifiers that they spend.
func spendersOf(e *Evidence) map[[32]byte][]*Transaction {
	out := make(map[[32]byte][]*Transaction)
	for i := range e.Transactions {
		tx := &e.Transactions[i]
		if tx.Failed {
			continue
		}
		for k := range tx.Calls {
			for _, nullifier := range tx.Calls[k].Inputs.Nullifiers {
				if nullifier != [32]byte{} {
					out[nullifier] = append(out[nullifier], tx)
				}
			}
		}
	}
	return out
}
