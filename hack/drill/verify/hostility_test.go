package verify_test

import (
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/drill/verify"
	"github.com/relaypool/relaypool/hack/load"
)

// withHostility adds the answers to hostile clients, the relays' pinned encoding of proof A, and
// an attempt of submission 1 that expired before the next one.
func withHostility(e *verify.Evidence) *verify.Evidence {
	for i := range e.Records {
		e.Records[i].Ended = true
	}
	e.Pins, e.ProofAEncoding = []string{"plain"}, "plain"
	e.HostileAnswers = map[verify.HostileAnswer]int{
		{Attack: "forges", Status: 400, Code: "proof_invalid"}: 12,
		{Attack: "forges", Status: 503, Code: "pool_busy"}:     2,
		{Attack: "copies", Status: 200}:                        3,
	}
	e.Attempts = append(e.Attempts, verify.Attempt{
		Signature: signature(40), Submission: id(1), Payer: payer, Purpose: "transact", Blockhash: solana.Hash{7}, CreatedAt: at(1.2), Fee: 50_001,
	})
	e.Attempts[0].CreatedAt, e.Attempts[0].Fee = at(2), 60_000
	e.Heights = verify.Heights{{7}: 100}
	e.Finality = []verify.Finality{{At: at(0), Slot: 90, Height: 80}, {At: at(1.9), Slot: 260, Height: 249}, {At: at(2.1), Slot: 261, Height: 250}, {At: at(9), Slot: 280, Height: 270}}
	return e
}

// hostileFaults are the faults that lies and hostile clients could cause.
func hostileFaults() map[string]injectedFault {
	const served, expires = "honest-clients-served", "expires-before-the-next"
	first := func(e *verify.Evidence) *load.Answer { return &e.Records[3].Requests[0].Answers[0] }
	return map[string]injectedFault{
		"a client got no outcome until the wait ended": {
			func(e *verify.Evidence) {
				e.Records[3].Ended = false
				*first(e) = load.Answer{Call: load.CallTransact, Status: 503, Code: "pool_busy"}
			},
			served, "its last answer was pool_busy",
		},
		"an honest proof was refused": {
			func(e *verify.Evidence) { first(e).Code = "proof_invalid" },
			served, "answered an honest proof with 400 proof_invalid",
		},
		"nullifier_spent was answered for an unspent note": {
			func(e *verify.Evidence) { first(e).Code = "nullifier_spent" },
			served, "no finalized transaction spends",
		},
		"nullifier_reserved was answered for a note that is not reserved": {
			func(e *verify.Evidence) { first(e).Code = "nullifier_reserved" },
			served, "no submission has one of its nullifiers",
		},
		"a forged proof was accepted": {
			func(e *verify.Evidence) { e.HostileAnswers[verify.HostileAnswer{Attack: "forges", Status: 202}] = 1 },
			"attacks-fail", "accepted 1 forged proofs",
		},
		"a relay broke at a hostile request": {
			func(e *verify.Evidence) {
				e.HostileAnswers[verify.HostileAnswer{Attack: "long fields", Status: 500, Code: "internal"}] = 4
			},
			"attacks-fail", "4 requests of the attack \"long fields\" with 500 internal",
		},
		"the relays pinned the wrong encoding of proof A": {
			func(e *verify.Evidence) { e.Pins = append(e.Pins, "negated") },
			"pin-is-true", "accepts proofs whose A is negated",
		},
		"an attempt was committed while an earlier one could land": {
			func(e *verify.Evidence) { e.Heights[solana.Hash{7}] = 101 },
			expires, "when finality was at height 250",
		},
		"an early attempt pays no more than the one before": {
			func(e *verify.Evidence) {
				e.Heights[solana.Hash{7}] = 101
				e.Attempts[0].Fee, e.Attempts[len(e.Attempts)-1].Fee = 5_000, 5_000
			},
			expires, "pays more: false",
		},
		"an attempt was committed before an earlier one's failure was final": {
			func(e *verify.Evidence) {
				e.Heights[solana.Hash{7}] = 101
				e.Transactions = append(e.Transactions, verify.Transaction{Signature: signature(40), Slot: 262, Failed: true, Payer: payer})
			},
			expires, "could land until height 251",
		},
	}
}

// noHostileFaults are correct changes that look like faults.
func noHostileFaults() map[string]func(*verify.Evidence) {
	return map[string]func(*verify.Evidence){
		"an attempt follows one whose failure is final": func(e *verify.Evidence) {
			e.Heights[solana.Hash{7}] = 101
			e.Transactions = append(e.Transactions, verify.Transaction{Signature: signature(40), Slot: 261, Failed: true, Payer: other})
		},
		"an early attempt costs little": func(e *verify.Evidence) {
			e.Heights[solana.Hash{7}] = 101
			e.Attempts[0].Fee, e.Attempts[len(e.Attempts)-1].Fee = 50_000, 5_000
		},
		"the height of an attempt's blockhash is unknown": func(e *verify.Evidence) { delete(e.Heights, solana.Hash{7}) },
		"a relay was busy for a while": func(e *verify.Evidence) {
			q := &e.Records[3].Requests[0]
			q.Answers = append([]load.Answer{{Call: load.CallTransact, Status: 503, Code: "chain_unavailable"}}, q.Answers...)
		},
		"a note was reserved by another submission": func(e *verify.Evidence) {
			q := &e.Records[3].Requests[0]
			q.Inputs.Nullifiers[0] = e.Submissions[0].Inputs.Nullifiers[0]
			q.Answers[0].Code = "nullifier_reserved"
		},
		"a note was spent on an abandoned fork": func(e *verify.Evidence) {
			e.Records[3].Requests[0].Answers[0].Code = "nullifier_spent"
			e.Undone = map[solana.Signature]bool{signature(9): true}
		},
	}
}
