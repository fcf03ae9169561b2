package verify

import (
	"fmt"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"
)

// Result is the outcome of one check.
type Result struct {
	// Name is a short name of the check. Claim is the sentence that it checks.
	Name  string `json:"name"`
	Claim string `json:"claim"`
	// Examined is the number of things that were checked.
	Examined int `json:"examined"`
	// Faults are the things that contradict the claim, each with its evidence:
	// request ids and signatures.
	Faults []string `json:"faults,omitempty"`
	// Undecided counts what the evidence neither confirms nor contradicts.
	Undecided int `json:"undecided,omitempty"`
	// Vacuous reports that the claim needs something to examine and had nothing.
	Vacuous bool `json:"vacuous,omitempty"`
}

// Passed reports whether the claim holds.
func (r *Result) Passed() bool { return len(r.Faults) == 0 && !r.Vacuous }

func (r *Result) fault(format string, args ...any) {
	r.Faults = append(r.Faults, fmt.Sprintf(format, args...))
}

// Check is one claim and the function that checks it against the evidence.
type Check struct {
	Name, Claim string
	// Needed reports that a run with nothing to examine does not prove the claim.
	Needed bool
	run    func(*Evidence, *Result)
}

// Run checks the claim against the evidence.
func (c Check) Run(e *Evidence) Result {
	r := Result{Name: c.Name, Claim: c.Claim}
	c.run(e, &r)
	r.Vacuous = c.Needed && r.Examined == 0
	return r
}

// Checks returns all checks, in the order of the report.
func Checks() []Check {
	return []Check{
		{"accepted-is-final", "every submission that a client's answer calls accepted, and every other row, is final in the database", true, acceptedIsFinal},
		{"answers-are-true", "the outcomes in clients' answers are those in the database", true, answersMatch},
		{"repeats-share-a-submission", "the same public inputs have at most one submission that did not fail", true, repeatsAnswered},
		{"outcome-is-true", "a completed submission landed without error with exactly its public inputs and recipient, and nothing of a failed submission landed", true, outcomeIsTrue},
		{"one-spend", "at most one landed transaction spends a nullifier", true, oneSpend},
		{"recipients-paid-once", "each recipient got exactly its share, once", true, recipientsPaid},
		{"swap-ends-once", "every landed swap ended once: the recipient's token account got the minimum or more, or the recipient's wallet got every lamport of the swap's state", true, swapsEndOnce},
		{"swap-outcome-is-true", "the database and /status report each swap's end as it is on the chain", true, swapOutcomeIsTrue},
		{"swap-ends-in-time", "no swap is refunded before its timeout, and none stays open for longer than lost executions and refunds take to expire", true, swapsEndInTime},
		{"swaps-leave-nothing", "swaps leave no state and no wrapped SOL behind, and the market got every lamport of the executed swaps", true, noLamportsLeft},
		{"payers-pay-fees-and-rent", "each transaction cost its payer the fee and the rent of accounts that it created, minus the rent of accounts that it closed, and no lamport more", true, payersPayRent},
		{"stale-root-is-true", "each root_not_found is true: the root was not in the root history at that time", false, staleRootsAreTrue},
		{"nothing-unknown-signed", "the database knows every transaction of the relays' fee payers on the chain", true, onlyKnownSigned},
		{"lamports-accounted", "payers' opening + funding − closing equals what the blocks' transactions cost them", true, lamportsAccounted},
		{"ledger-is-true", "the relays' own ledger has each landed transaction of a payer once, with its true cost", true, ledgerIsTrue},
		{"honest-clients-served", "every honest client has an outcome, and its proofs are refused only for their root or for a spent or reserved note", true, honestClientsServed},
		{"attacks-fail", "no forged proof is accepted, and no client's request breaks a relay", false, attacksFail},
		{"pin-is-true", "the relays' pinned encoding of A is the one that the program accepts", true, pinIsTrue},
		{"expires-before-the-next", "an attempt is committed only when no earlier one of its submission can land any more, or those that fail cost little", false, earlierAttemptsExpired},
		{"no-request-content-shown", "no log line and no metric shows a proof, nullifier, commitment, recipient or note", true, noContentLeaked},
	}
}

type index struct {
	submissions map[uuid.UUID]*Submission
	// executions has the ids of the swaps' first legs as keys.
	executions map[uuid.UUID]*Execution
	attempts   map[solana.Signature]*Attempt
	landed     map[solana.Signature]*Transaction
	payers     map[solana.PublicKey]bool
}

func newIndex(e *Evidence) *index {
	x := &index{
		submissions: ByKey(e.Submissions, func(s *Submission) uuid.UUID { return s.ID }),
		executions:  ByKey(e.Executions, func(s *Execution) uuid.UUID { return s.Swap }),
		attempts:    ByKey(e.Attempts, func(a *Attempt) solana.Signature { return a.Signature }),
		landed:      ByKey(e.Transactions, func(tx *Transaction) solana.Signature { return tx.Signature }),
		payers:      make(map[solana.PublicKey]bool, len(e.Payers)),
	}
	for _, p := range e.Payers {
		x.payers[p.Key] = true
	}
	return x
}

// ByKey maps the members of a list by a key of each.
func ByKey[K comparable, V any](list []V, key func(*V) K) map[K]*V {
	out := make(map[K]*V, len(list))
	for i := range list {
		out[key(&list[i])] = &list[i]
	}
	return out
}
