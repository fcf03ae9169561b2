package account

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/hack/load"
)

// blockhashLife is how many blocks after its own a blockhash is valid.
const blockhashLife = 150

// honestServed checks that no endpoint's lie and no hostile client kept an honest
// client from its outcome, or caused an honest proof to be refused.
func honestServed(e *Evidence, r *Result) {
	spenders := spendersOf(e)
	reserved := make(map[[32]byte]bool)
	for i := range e.Submissions {
		for _, nullifier := range e.Submissions[i].Inputs.Nullifiers {
			reserved[nullifier] = nullifier != [32]byte{} // the zero nullifier stands for no note
		}
	}
	for i := range e.Records {
		r.Examined++
		if record := &e.Records[i]; !record.Ended {
			r.fault("spend %d has no outcome when patience ends; its last answer was %s", record.Number, lastAnswer(record))
		}
	}
	Each(e.Records, func(record *load.Record, q *load.Request, a *load.Answer) {
		if a.Status == http.StatusTooManyRequests || a.Status >= http.StatusInternalServerError {
			return // the answer does not judge the spend; the client sends it again
		}
		taken := func(by func([32]byte) bool) bool { return slices.ContainsFunc(q.Inputs.Nullifiers[:], by) }
		switch a.Code {
		case "", "root_not_found", "swap_refunded":
		case "nullifier_spent":
			switch {
			case taken(func(n [32]byte) bool { return len(spenders[n]) > 0 }):
			case len(e.Undone) > 0 && !a.Failed():
				r.Undecided++ // the transaction that spent it may be on an abandoned fork
			default:
				r.fault("spend %d: relay %d answered nullifier_spent at %s, and nothing on the finalized chain spends a nullifier of it", record.Number, a.Relay+1, clock(a.At))
			}
		case "nullifier_reserved":
			if !taken(func(n [32]byte) bool { return reserved[n] }) {
				r.fault("spend %d: relay %d answered nullifier_reserved at %s, and no submission has a nullifier of it", record.Number, a.Relay+1, clock(a.At))
			}
		default:
			r.fault("spend %d: relay %d answered an honest proof with %d %s at %s", record.Number, a.Relay+1, a.Status, a.Code, clock(a.At))
		}
	})
}

func lastAnswer(record *load.Record) string {
	for _, q := range slices.Backward(record.Requests) {
		if len(q.Answers) > 0 {
			a := &q.Answers[len(q.Answers)-1]
			return cmp.Or(a.Code, a.State, a.Fault, http.StatusText(a.Status))
		}
	}
	return "none"
}

// pinIsTrue compares the encoding of A that the relays have learnt with the program's.
func pinIsTrue(e *Evidence, r *Result) {
	for _, sign := range e.Pins {
		r.Examined++
		if sign != e.Sign {
			r.fault("the database says that the program takes proofs whose A is %s; it takes those whose A is %s", sign, e.Sign)
		}
	}
}

// attacksFail checks that no forged proof is accepted, and that no client request
// breaks a relay.
func attacksFail(e *Evidence, r *Result) {
	for answer, count := range e.Hostile {
		r.Examined += count
		switch {
		case answer.Status == http.StatusInternalServerError:
			r.fault("relays answered %d requests of the attack %q with 500 %s", count, answer.Attack, answer.Code)
		case answer.Attack == "forges" && answer.Status/100 == 2:
			r.fault("relays took %d forged proofs, with %d", count, answer.Status)
		}
	}
}

// diesFirst checks invariant 4 as well as it can be observed afterwards: when an
// attempt was committed, no earlier attempt of its submission could still land.
// Heights are the chain's, because a blockhash's height in the database may be a lie.
func diesFirst(e *Evidence, r *Result) {
	x := indexed(e)
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
				seen := finalizedAfter(e, later.CreatedAt)
				made, known := e.Heights[earlier.Blockhash]
				switch tx := x.landed[earlier.Signature]; {
				case seen == nil || !known: // an abandoned fork's blockhash, or no observation
					r.Undecided++
				case tx != nil && tx.Failed && tx.Slot <= seen.Slot:
				case seen.Height < made+blockhashLife:
					r.fault("request %s: attempt %s was committed at %s, when finality was at height %d, and attempt %s could land until height %d", submission, later.Signature, clock(later.CreatedAt), seen.Height, earlier.Signature, made+blockhashLife)
				}
			}
		}
	}
}

// finalizedAfter is the first observation of finality from then on: finality had
// reached at most this height then.
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
