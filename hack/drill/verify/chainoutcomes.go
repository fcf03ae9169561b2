package verify

import (
	"fmt"
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/shieldpool"
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

// oneSpend checks invariant 2, and that a submission lands once.
func oneSpend(e *Evidence, r *Result) {
	x := newIndex(e)
	for _, txs := range spendersOf(e) {
		r.Examined++
		if len(txs) > 1 {
			r.fault("transactions %s and %s spend the same nullifier", txs[0].Signature, txs[1].Signature)
		}
	}
	landed := make(map[uuid.UUID]solana.Signature)
	for i := range e.Transactions {
		tx := &e.Transactions[i]
		attempt := x.attempts[tx.Signature]
		// A move has no submission.
		if attempt == nil || tx.Failed || attempt.Purpose == PurposeMove {
			continue
		}
		if other, twice := landed[attempt.Submission]; twice {
			r.fault("request %s landed twice: %s and %s", attempt.Submission, other, tx.Signature)
		}
		landed[attempt.Submission] = tx.Signature
	}
}

// recipientsPaid computes each recipient's share from the completed submissions
// and compares it with the change of the balance: fresh recipients have no other
// income. The wallet of a swap gets lamports only by its refund.
func recipientsPaid(e *Evidence, r *Result) {
	due := make(map[solana.PublicKey]int64)
	for i := range e.Submissions {
		s := &e.Submissions[i]
		if s.Inputs.PublicAmount >= 0 {
			continue
		}
		due[s.Recipient] += 0 // a failed withdrawal pays nothing
		if s.State == "completed" && s.Swap == nil {
			net, _ := e.Fees.Net(s.Inputs.Gross())
			due[s.Recipient] += int64(net) //nolint:gosec // far below 2^63 lamports exist
		}
	}
	x := newIndex(e)
	paid := make(map[solana.PublicKey]int64)
	for i := range e.Transactions {
		tx := &e.Transactions[i]
		for key, change := range tx.Changes {
			paid[key] += change
		}
		for k := range tx.Ends {
			if end := &tx.Ends[k]; !tx.Failed && end.How == shieldpool.Refunded {
				due[end.Recipient] += end.heldLamports(tx)
			}
		}
		if tx.Failed || x.payers[tx.Payer] {
			continue
		}
		// A client's own wallet sent this withdrawal to the chain.
		for k := range tx.Calls {
			if call := &tx.Calls[k]; call.Inputs.PublicAmount < 0 && call.Swap == nil {
				net, _ := e.Fees.Net(call.Inputs.Gross())
				due[call.Recipient] += int64(net) //nolint:gosec // as above
			}
		}
	}
	for recipient, want := range due {
		r.Examined++
		if paid[recipient] != want {
			r.fault("a recipient of request %s got %d lamports, expected %d", requestOf(e, recipient), paid[recipient], want)
		}
	}
}

func requestOf(e *Evidence, recipient solana.PublicKey) uuid.UUID {
	for i := range e.Submissions {
		if e.Submissions[i].Recipient == recipient {
			return e.Submissions[i].ID
		}
	}
	return uuid.Nil
}

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

// earlierAttemptsExpired checks invariant 4 as far as it can be observed afterwards: when an attempt was
// committed, no earlier attempt of its submission could still land. It uses the chain's
// heights, because a blockhash's height in the database may be wrong.
func earlierAttemptsExpired(e *Evidence, r *Result) {
	x := newIndex(e)
	attempts := make(map[uuid.UUID][]*Attempt)
	for i := range e.Attempts {
		if a := &e.Attempts[i]; a.Purpose == purposeTransact {
			attempts[a.Submission] = append(attempts[a.Submission], a)
		}
	}
	for submission, all := range attempts {
		slices.SortFunc(all, func(a, b *Attempt) int { return a.CreatedAt.Compare(b.CreatedAt) })
		for i, later := range all {
			for _, earlier := range all[:i] {
				r.Examined++
				finalized := finalizedAfter(e, later.CreatedAt)
				height, known := e.Heights[earlier.Blockhash]
				switch tx := x.landed[earlier.Signature]; {
				case finalized == nil || !known: // an abandoned fork's blockhash, or no observation
					r.Undecided++
				case tx != nil && tx.Failed && tx.Slot <= finalized.Slot:
				case finalized.Height < height+blockhashLife:
					r.fault("request %s: attempt %s was committed at %s, when finality was at height %d, and attempt %s could land until height %d", submission, later.Signature, clock(later.CreatedAt), finalized.Height, earlier.Signature, height+blockhashLife)
				}
			}
		}
	}
}

// finalizedAfter returns the first observation of finality after then. It bounds the height
// that was finalized at that time.
func finalizedAfter(e *Evidence, then time.Time) *Finality {
	i, _ := slices.BinarySearchFunc(e.Finality, then, func(f Finality, then time.Time) int { return f.At.Compare(then) })
	if i == len(e.Finality) {
		return nil
	}
	return &e.Finality[i]
}

// Finality is the finalized slot and height at a time.
type Finality struct {
	At           time.Time
	Slot, Height uint64
}

// Heights are the block heights of blockhashes.
type Heights map[solana.Hash]uint64

// blockhashLife is for how many blocks a blockhash is valid.
const blockhashLife = 150

// pinIsTrue compares the encoding of A that the relays have pinned with the program's.
func pinIsTrue(e *Evidence, r *Result) {
	for _, encoding := range e.Pins {
		r.Examined++
		if encoding != e.ProofAEncoding {
			r.fault("the database records that the program accepts proofs whose A is %s; the program accepts proofs whose A is %s", encoding, e.ProofAEncoding)
		}
	}
}
