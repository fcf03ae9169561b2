package verify_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/hack/drill/verify"
	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

var (
	start = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	payer = solana.PublicKey{1}
	other = solana.PublicKey{2} // another user's wallet
	payee = solana.PublicKey{3}
)

const (
	gross = 100_000_000
	net   = gross - 5_300_000 // protocol.md §4
	rent  = 890_880
	fee   = 5_300
)

func at(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

func id(n byte) uuid.UUID               { return uuid.UUID{n} }
func signature(n byte) solana.Signature { return solana.Signature{n} }
func root(n byte) [32]byte              { return [32]byte{31: n} }

func inputs(n byte, amount int64) shieldpool.PublicInputs {
	return shieldpool.PublicInputs{
		Root: root(1), PublicAmount: amount,
		Nullifiers:  [2][32]byte{{30: 1, 31: n}, {}}, // one note, and no second
		Commitments: [2][32]byte{{30: 2, 31: n}, {30: 3, 31: n}},
	}
}

func rootHistory(second float64, roots ...byte) verify.RootHistory {
	r := verify.RootHistory{At: at(second), Roots: make(map[[32]byte]struct{})}
	for _, n := range roots {
		r.Roots[root(n)] = struct{}{}
	}
	return r
}

// sound returns the evidence of a small drill without faults: submission 1, a withdrawal, completed; submission 2, a
// transfer, failed with root_not_found after an attempt that failed on the chain; submission 3, a
// withdrawal whose note another transaction spent meanwhile; a refusal for a stale root, and a
// repeat.
func sound() *verify.Evidence { return withHostility(withSwaps(plain())) }

// plain returns the evidence of the drill without its swaps.
func plain() *verify.Evidence {
	accepted := func(n byte, second float64) load.Answer {
		return load.Answer{Call: load.CallTransact, Status: 202, RequestID: id(n), State: "pending", Sent: at(second), At: at(second + 0.1)}
	}
	return &verify.Evidence{
		Fees: shieldpool.Development().Fees,
		Records: []load.Record{
			{Number: 0, Requests: []load.Request{{Inputs: inputs(1, -gross), Recipient: payee, Answers: []load.Answer{
				accepted(1, 1), accepted(1, 2),
				{Call: load.CallStatus, Status: 200, RequestID: id(1), State: "completed", Signature: signature(1).String(), At: at(3)},
				{Call: load.CallStatus, Status: 200, RequestID: id(1), State: "completed", Finalized: true, Signature: signature(1).String(), At: at(20)},
			}}}},
			{Number: 1, Requests: []load.Request{{Inputs: inputs(2, 0), Answers: []load.Answer{
				accepted(2, 1),
				{Call: load.CallStatus, Status: 200, RequestID: id(2), State: "failed", Code: "root_not_found", At: at(9)},
			}}}},
			{Number: 2, Requests: []load.Request{{Inputs: inputs(3, -gross), Recipient: other, Answers: []load.Answer{
				accepted(3, 1),
				{Call: load.CallTransact, Status: 409, RequestID: id(3), Code: "nullifier_spent", At: at(9)},
			}}}},
			{Number: 3, Requests: []load.Request{{Inputs: inputs(4, 0), Answers: []load.Answer{
				{Call: load.CallTransact, Status: 400, Code: "root_not_found", Sent: at(7.2), At: at(7.4)},
			}}}},
		},
		Submissions: []verify.Submission{
			{ID: id(1), State: "completed", Finalized: true, Signature: signature(1), Inputs: inputs(1, -gross), Recipient: payee, CreatedAt: at(1), CompletedAt: at(3)},
			{ID: id(2), State: "failed", Code: "root_not_found", Inputs: inputs(2, 0), CreatedAt: at(1), CompletedAt: at(8)},
			{ID: id(3), State: "failed", Code: "nullifier_spent", Inputs: inputs(3, -gross), Recipient: other, CreatedAt: at(1), CompletedAt: at(8)},
		},
		Attempts: []verify.Attempt{
			{Signature: signature(1), Submission: id(1), Payer: payer, Purpose: "transact"},
			{Signature: signature(2), Submission: id(2), Payer: payer, Purpose: "transact"},
		},
		Transactions: []verify.Transaction{
			{
				Signature: signature(1), Slot: 10, Payer: payer, Fee: fee, SignatureFee: 5000, Rent: 6960,
				Calls:   []verify.PoolCall{{Inputs: inputs(1, -gross), Recipient: payee}},
				Changes: map[solana.PublicKey]int64{payer: -fee - rent, payee: net},
			},
			{
				Signature: signature(2), Slot: 11, Failed: true, Payer: payer, Fee: fee, SignatureFee: 5000,
				Calls:   []verify.PoolCall{{Inputs: inputs(2, 0), Recipient: payer}},
				Changes: map[solana.PublicKey]int64{payer: -fee},
			},
			{
				Signature: signature(9), Slot: 12, Payer: other, Fee: 5000, SignatureFee: 5000,
				Calls:   []verify.PoolCall{{Inputs: inputs(3, 0), Recipient: other}},
				Changes: map[solana.PublicKey]int64{other: 0},
			},
		},
		RootHistories: []verify.RootHistory{rootHistory(0, 1), rootHistory(4, 1, 2), rootHistory(7, 2, 3), rootHistory(8, 3)},
		Payers:        []verify.Payer{{Key: payer, Opening: 1_000_000_000, LedgerOpening: 600_000_000, Funded: 7, Closing: 1_000_000_007 - 2*fee - rent}},
		Entries: []verify.Entry{
			{Signature: signature(1), Payer: payer, Kind: "withdrawal", Fee: 5000, Priority: fee - 5000, Rent: rent},
			{Signature: signature(2), Payer: payer, Kind: "failed", Fee: 5000, Priority: fee - 5000},
			{Signature: signature(8), Payer: payer, Kind: "received", Received: 400_000_007},
		},
		Scanned: 1000,
	}
}

func results(e *verify.Evidence) map[string]verify.Result {
	out := make(map[string]verify.Result)
	for _, c := range verify.Checks() {
		out[c.Name] = c.Run(e)
	}
	return out
}

func TestSoundEvidencePassesEveryCheck(t *testing.T) {
	t.Parallel()
	for name, r := range results(sound()) {
		if !r.Passed() || r.Undecided > 0 {
			t.Errorf("%s: faults %q, vacuous %t, %d undecided; want no faults, false and 0", name, r.Faults, r.Vacuous, r.Undecided)
		}
		if r.Examined == 0 {
			t.Errorf("%s examined nothing", name)
		}
	}
}

// injectedFault is a fault that a test adds to sound evidence.
type injectedFault struct {
	inject func(*verify.Evidence)
	// check has to report it, with want in one of its faults.
	check, want string
}

// Each fault added to sound evidence is reported by its check, and each check has such a fault.
func TestEveryFaultIsFound(t *testing.T) {
	t.Parallel()
	tests := map[string]injectedFault{
		"an accepted submission is not in the database": {
			func(e *verify.Evidence) { e.Submissions = e.Submissions[1:] },
			"accepted-is-final", "accepted request " + id(1).String(),
		},
		"an accepted submission never ended": {
			func(e *verify.Evidence) { e.Submissions[1].State, e.Submissions[1].Code = "processing", "" },
			"accepted-is-final", "is processing",
		},
		"a completed submission never became final": {
			func(e *verify.Evidence) { e.Submissions[0].Finalized = false },
			"accepted-is-final", "finalized false",
		},
		"a row that no client knows of never ended": {
			func(e *verify.Evidence) {
				e.Submissions = append(e.Submissions, verify.Submission{ID: id(7), State: "pending"})
			},
			"accepted-is-final", id(7).String(),
		},
		"a relay forgot an accepted submission": {
			func(e *verify.Evidence) {
				a := &e.Records[0].Requests[0].Answers[2]
				a.Status, a.State, a.Code = 404, "", "not_found"
			},
			"accepted-is-final", "answered 404",
		},
		"a completed submission was reported failed": {
			func(e *verify.Evidence) {
				a := &e.Records[0].Requests[0].Answers[2]
				a.State, a.Code, a.Signature = "failed", "root_not_found", ""
			},
			"answers-are-true", "failed with root_not_found; the database says completed",
		},
		"a client was told a wrong reason for a failure": {
			func(e *verify.Evidence) { e.Records[1].Requests[0].Answers[1].Code = "nullifier_spent" },
			"answers-are-true", "failed with nullifier_spent",
		},
		"a submission that completed was reported refused": {
			func(e *verify.Evidence) {
				e.Records[0].Requests[0].Answers[1] = load.Answer{Call: load.CallTransact, Status: 409, RequestID: id(1), Code: "nullifier_spent"}
			},
			"answers-are-true", "failed with nullifier_spent",
		},
		"a final success was reported with a wrong signature": {
			func(e *verify.Evidence) { e.Records[0].Requests[0].Answers[3].Signature = signature(5).String() },
			"answers-are-true", "is final with signature",
		},
		"a reported success is unknown and no fork undid it": {
			func(e *verify.Evidence) { e.Records[0].Requests[0].Answers[2].Signature = signature(5).String() },
			"answers-are-true", "which no fork undid",
		},
		"one request became two live submissions": {
			func(e *verify.Evidence) {
				twin := e.Submissions[0]
				twin.ID = id(6)
				e.Submissions = append(e.Submissions, twin)
			},
			"repeats-share-a-submission", "neither failed",
		},
		"a repeat returned a wrong ID": {
			func(e *verify.Evidence) { e.Records[0].Requests[0].Answers[1].RequestID = id(2) },
			"repeats-share-a-submission", "answered a repeat",
		},
		"a completed submission did not land": {
			func(e *verify.Evidence) { e.Transactions = e.Transactions[1:] },
			"outcome-is-true", "does not have",
		},
		"a completed submission failed on the chain": {
			func(e *verify.Evidence) { e.Transactions[0].Failed = true },
			"outcome-is-true", "failed on the chain in slot 10",
		},
		"a completed submission has somebody else's transaction": {
			func(e *verify.Evidence) { e.Attempts[0].Submission = id(2) },
			"outcome-is-true", "is not an attempt of this request",
		},
		"a completed submission landed with other public inputs": {
			func(e *verify.Evidence) { e.Transactions[0].Calls[0].Inputs.Commitments[0] = root(9) },
			"outcome-is-true", "other public inputs",
		},
		"a completed submission paid another recipient": {
			func(e *verify.Evidence) { e.Transactions[0].Calls[0].Recipient = other },
			"outcome-is-true", "pays another recipient",
		},
		"a completed submission's transaction does not call the pool": {
			func(e *verify.Evidence) { e.Transactions[0].Calls = nil },
			"outcome-is-true", "calls the pool 0 times",
		},
		"a failed submission landed": {
			func(e *verify.Evidence) { e.Transactions[1].Failed = false },
			"outcome-is-true", "landed in slot 11",
		},
		"a failed submission landed by an unrecorded attempt": {
			func(e *verify.Evidence) {
				e.Transactions[1].Failed, e.Transactions[1].Signature = false, signature(5)
			},
			"outcome-is-true", "of a relay's payer and with its public inputs",
		},
		"a submission failed with nullifier_spent, and nobody spent its note": {
			func(e *verify.Evidence) { e.Transactions = e.Transactions[:2] },
			"outcome-is-true", "no finalized transaction spends",
		},
		"two transactions spend one nullifier": {
			func(e *verify.Evidence) {
				twin := e.Transactions[0]
				twin.Signature, twin.Payer = signature(5), other
				e.Transactions = append(e.Transactions, twin)
			},
			"one-spend", "spend the same nullifier",
		},
		"a submission landed twice": {
			func(e *verify.Evidence) {
				e.Transactions[1].Failed = false
				e.Attempts[1].Submission = id(1)
			},
			"one-spend", "landed twice",
		},
		"a recipient was paid twice": {
			func(e *verify.Evidence) { e.Transactions[1].Changes[payee] = net },
			"recipients-paid-once", fmt.Sprintf("got %d lamports, expected %d", 2*net, net),
		},
		"a recipient was not paid": {
			func(e *verify.Evidence) { delete(e.Transactions[0].Changes, payee) },
			"recipients-paid-once", "got 0 lamports",
		},
		"a recipient was paid for a failed withdrawal": {
			func(e *verify.Evidence) { e.Transactions[2].Changes[other] = 12 },
			"recipients-paid-once", "got 12 lamports, expected 0",
		},
		"a request was refused for a root in the history": {
			func(e *verify.Evidence) {
				a := &e.Records[3].Requests[0].Answers[0]
				a.Sent, a.At = at(4.2), at(6.4)
			},
			"stale-root-is-true", "when the root history held it",
		},
		"a submission failed for a root in the history": {
			func(e *verify.Evidence) { e.Submissions[1].CompletedAt = at(6) },
			"stale-root-is-true", "when the root history held its root",
		},
		"a transaction of a relay's payer is unknown to the database": {
			func(e *verify.Evidence) { e.Attempts = e.Attempts[:1] },
			"nothing-unknown-signed", signature(2).String(),
		},
		"lamports are missing": {
			func(e *verify.Evidence) { e.Payers[0].Closing-- },
			"lamports-accounted", "lamports, expected",
		},
		"a transaction is missing from the ledger": {
			func(e *verify.Evidence) { e.Entries = e.Entries[1:] },
			"ledger-is-true", "does not have " + signature(1).String(),
		},
		"the ledger invents a transaction": {
			func(e *verify.Evidence) {
				e.Entries = append(e.Entries, verify.Entry{Signature: signature(5), Payer: payer})
			},
			"ledger-is-true", "which the finalized chain does not have",
		},
		"the ledger has a transaction twice": {
			func(e *verify.Evidence) { e.Entries = append(e.Entries, e.Entries[0]) },
			"ledger-is-true", "twice",
		},
		"the ledger has a wrong fee":          {func(e *verify.Evidence) { e.Entries[0].Fee++ }, "ledger-is-true", "the chain says"},
		"the ledger has a wrong priority fee": {func(e *verify.Evidence) { e.Entries[0].Priority++ }, "ledger-is-true", "the chain says"},
		"the ledger has a wrong rent":         {func(e *verify.Evidence) { e.Entries[0].Rent-- }, "ledger-is-true", "the chain says"},
		"the ledger cannot explain something": {func(e *verify.Evidence) { e.Entries[1].Other = 3 }, "ledger-is-true", "leaves 3 lamports"},
		"the ledger has a wrong income":       {func(e *verify.Evidence) { e.Entries[2].Received++ }, "ledger-is-true", "received 1000000008 lamports, expected 1000000007"},
		"the ledger command reports a loss":   {func(e *verify.Evidence) { e.LedgerFault = "a lamport is missing" }, "ledger-is-true", "relay ledger reports"},
		"a log shows a nullifier": {
			func(e *verify.Evidence) {
				e.Leaks = []verify.Leak{{Source: "relay-1.log", Line: 3, What: "nullifier in hexadecimal"}}
			},
			"no-request-content-shown", "relay-1.log:3 holds a part of a nullifier in hexadecimal",
		},
	}
	maps.Copy(tests, swapFaults())
	maps.Copy(tests, moveFaults())
	maps.Copy(tests, hostileFaults())
	seen := map[string]bool{}
	for name, tc := range tests {
		seen[tc.check] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := sound()
			tc.inject(e)
			r := results(e)[tc.check]
			if r.Passed() || !slices.ContainsFunc(r.Faults, func(f string) bool { return strings.Contains(f, tc.want) }) {
				t.Errorf("%s has faults %q, want one with %q", tc.check, r.Faults, tc.want)
			}
		})
	}
	for _, c := range verify.Checks() {
		if !seen[c.Name] {
			t.Errorf("no test case for check %s", c.Name)
		}
	}
}

// The checks must not report false faults: a check with false alarms gets switched off.
func TestChecksHaveNoFalseAlarms(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*verify.Evidence){
		"a client saw a success that a fork undid, and then a failure": func(e *verify.Evidence) {
			e.Records[1].Requests[0].Answers = append(e.Records[1].Requests[0].Answers,
				load.Answer{Call: load.CallStatus, Status: 200, RequestID: id(2), State: "completed", Signature: signature(2).String(), At: at(3)})
			e.Undone = map[solana.Signature]bool{signature(2): true}
		},
		"a repeat after the failure is a new submission": func(e *verify.Evidence) {
			again := e.Submissions[1]
			again.ID = id(6)
			e.Submissions = append(e.Submissions, again)
			e.Records[1].Requests[0].Answers = append(e.Records[1].Requests[0].Answers,
				load.Answer{Call: load.CallTransact, Status: 202, RequestID: id(6), Sent: at(8.5), At: at(8.6)})
		},
		"somebody else spent a note and paid its recipient": func(e *verify.Evidence) {
			e.Transactions[2].Calls[0].Inputs.PublicAmount = -gross
			e.Transactions[2].Changes = map[solana.PublicKey]int64{other: net}
		},
		"the root was evicted while the request was checked": func(e *verify.Evidence) {
			a := &e.Records[3].Requests[0].Answers[0]
			a.Sent, a.At = at(6), at(7.1)
		},
	}
	maps.Copy(tests, noSwapFaults())
	maps.Copy(tests, noHostileFaults())
	tests["keys were rotated, and lamports moved from one payer to another"] = withMove
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := sound()
			change(e)
			for check, r := range results(e) {
				if !r.Passed() {
					t.Errorf("%s has faults %q, want none", check, r.Faults)
				}
			}
		})
	}
}

func TestStaleRootIsUndecidedWithoutRecentHistory(t *testing.T) {
	t.Parallel()
	e := sound()
	e.RootHistories = []verify.RootHistory{rootHistory(0, 1), rootHistory(60, 1)}
	e.Records[3].Requests[0].Answers[0].Sent = at(30)
	e.Records[3].Requests[0].Answers[0].At = at(31)
	if r := results(e)["stale-root-is-true"]; r.Undecided != 1 {
		t.Errorf("%d undecided, faults %q; want one undecided", r.Undecided, r.Faults)
	}
}

func TestMostChecksFailWithoutEvidence(t *testing.T) {
	t.Parallel()
	for name, r := range results(&verify.Evidence{}) {
		if want := slices.Contains([]string{"stale-root-is-true", "attacks-fail", "expires-before-the-next"}, name); r.Passed() != want {
			t.Errorf("%s without evidence: passed %t, want %t", name, r.Passed(), want)
		}
	}
}
