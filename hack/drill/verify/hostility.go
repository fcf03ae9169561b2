package verify

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/relaypool/relaypool/hack/load"
)

// honestClientsServed checks that no endpoint's lie and no hostile client kept an honest
// client from its outcome, or caused an honest proof to be refused.
func honestClientsServed(e *Evidence, r *Result) {
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
			r.fault("spend %d has no outcome at the end of the wait; its last answer was %s", record.Number, lastAnswer(record))
		}
	}
	Each(e.Records, func(record *load.Record, q *load.Request, a *load.Answer) {
		if a.Status == http.StatusTooManyRequests || a.Status >= http.StatusInternalServerError {
			return // the answer decides nothing about the spend; the client sends it again
		}
		taken := func(by func([32]byte) bool) bool { return slices.ContainsFunc(q.Inputs.Nullifiers[:], by) }
		switch a.Code {
		case "", "root_not_found", "swap_refunded":
		case "nullifier_spent":
			switch {
			case taken(func(n [32]byte) bool { return len(spenders[n]) > 0 }):
			case len(e.Undone) > 0 && !a.Failed():
				r.Undecided++ // the transaction that spent the note may be on an abandoned fork
			default:
				r.fault("spend %d: relay %d answered nullifier_spent at %s, but no finalized transaction spends one of its nullifiers", record.Number, a.Relay+1, clock(a.At))
			}
		case "nullifier_reserved":
			if !taken(func(n [32]byte) bool { return reserved[n] }) {
				r.fault("spend %d: relay %d answered nullifier_reserved at %s, but no submission has one of its nullifiers", record.Number, a.Relay+1, clock(a.At))
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

// attacksFail checks that no forged proof is accepted, and that no client request breaks a relay.
func attacksFail(e *Evidence, r *Result) {
	for answer, count := range e.HostileAnswers {
		r.Examined += count
		switch {
		case answer.Status == http.StatusInternalServerError:
			r.fault("relays answered %d requests of the attack %q with 500 %s", count, answer.Attack, answer.Code)
		case answer.Attack == "forges" && answer.Status/100 == 2:
			r.fault("relays accepted %d forged proofs, with %d", count, answer.Status)
		}
	}
}
