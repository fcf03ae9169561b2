package verify_test

import (
	"slices"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/hack/drill/verify"
	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	stateRent, tokenRent = 2_011_440, 2_039_280 // at the rate 6960
	timeout, grace       = 200, 50
	minimum              = 1000
)

// The first of the two swaps is executed, and the second is refunded.
var (
	buyer, saver           = solana.PublicKey{4}, solana.PublicKey{5}
	buyerATA, saverATA     = solana.PublicKey{4, 1}, solana.PublicKey{5, 1}
	buyerState, saverState = solana.PublicKey{4, 2}, solana.PublicKey{5, 2}
	buyerWSOL, buyerOutput = solana.PublicKey{4, 3}, solana.PublicKey{4, 4}
	vault                  = solana.PublicKey{6}
)

func terms(account solana.PublicKey) *shieldpool.SwapTerms {
	return &shieldpool.SwapTerms{OutputMint: solana.PublicKey{7}, RecipientATA: account, MinOutput: minimum}
}

// withSwaps adds two swaps to the sound drill: swap 10 is executed, and swap 11 is refunded after an execution that failed on the chain.
func withSwaps(e *verify.Evidence) *verify.Evidence {
	accepted := func(n byte) load.Answer {
		return load.Answer{Call: load.CallSwap, Status: 200, RequestID: id(n), State: "processing", Signature: signature(n).String(), Sent: at(1), At: at(1.5)}
	}
	swap := func(ata solana.PublicKey) *load.Swap { return &load.Swap{Terms: *terms(ata)} }
	executed := load.Answer{
		Call: load.CallStatus, Status: 200, RequestID: id(10), State: "completed", Signature: signature(10).String(), Finalized: true, At: at(20),
		SwapAnswer: load.SwapAnswer{Phase: "executed", SwapSignature: signature(22).String()},
	}
	refunded := load.Answer{
		Call: load.CallStatus, Status: 200, RequestID: id(11), State: "failed", Code: "swap_refunded", Signature: signature(11).String(), Finalized: true, At: at(90),
		SwapAnswer: load.SwapAnswer{Phase: "refunded", RefundSignature: signature(24).String()},
	}
	e.Records = append(e.Records,
		load.Record{Number: 10, Requests: []load.Request{{Inputs: inputs(10, -gross), Recipient: buyer, Swap: swap(buyerATA), Answers: []load.Answer{accepted(10), executed}}}},
		load.Record{Number: 11, Requests: []load.Request{{Inputs: inputs(11, -gross), Recipient: saver, Swap: swap(saverATA), Answers: []load.Answer{accepted(11), refunded}}}})
	e.Submissions = append(e.Submissions,
		verify.Submission{ID: id(10), State: "completed", Finalized: true, Signature: signature(10), Inputs: inputs(10, -gross), Recipient: buyer, Swap: terms(buyerATA), CreatedAt: at(1), CompletedAt: at(1.4)},
		verify.Submission{ID: id(11), State: "completed", Finalized: true, Signature: signature(11), Inputs: inputs(11, -gross), Recipient: saver, Swap: terms(saverATA), CreatedAt: at(1), CompletedAt: at(1.4)})
	e.Executions = []verify.Execution{
		{ID: id(20), Swap: id(10), State: "completed", Phase: "executed", Ended: true, Finalized: true, Signature: signature(22), Timeout: 230},
		{ID: id(21), Swap: id(11), State: "completed", Phase: "refunded", Ended: true, Finalized: true, Signature: signature(24), Timeout: 231},
	}
	e.SwapAnswers = map[uuid.UUID]verify.SwapStatus{
		id(10): {Status: "completed", Phase: "executed", Finalized: true, Signature: signature(10).String(), Execution: signature(22).String()},
		id(11): {Status: "failed", Phase: "refunded", Code: "swap_refunded", Finalized: true, Signature: signature(11).String(), Refund: signature(24).String()},
	}
	e.SwapTimeout, e.SwapGrace, e.Searched = timeout, grace, 3
	e.Vault = verify.Vault{Opening: 5, Closing: 5 + net}
	addSwapTransactions(e)
	return e
}

// addSwapTransactions adds the transactions of the two swaps, and their entries in the ledger.
func addSwapTransactions(e *verify.Evidence) {
	land := func(n byte, slot uint64, row byte, purpose string, rent int64, tx verify.Transaction) {
		e.Attempts = append(e.Attempts, verify.Attempt{Signature: signature(n), Submission: id(row), Payer: payer, Purpose: purpose})
		tx.Signature, tx.Slot, tx.Payer, tx.Fee, tx.SignatureFee, tx.Rent = signature(n), slot, payer, fee, 5000, 6960
		if tx.Changes == nil {
			tx.Changes = make(map[solana.PublicKey]int64)
		}
		tx.Changes[payer] = -fee - rent
		e.Transactions = append(e.Transactions, tx)
		kind := "swap"
		if tx.Failed {
			kind = "failed"
		}
		e.Entries = append(e.Entries, verify.Entry{Signature: signature(n), Payer: payer, Kind: kind, Fee: 5000, Priority: fee - 5000, Rent: rent})
		e.Payers[0].Closing -= uint64(fee + rent)
	}
	leg := func(n byte, slot uint64, ata, state solana.PublicKey) {
		land(n, slot, n, "transact", rent+stateRent, verify.Transaction{
			Calls:   []verify.PoolCall{{Inputs: inputs(n, -gross), Recipient: state, Swap: terms(ata)}},
			Changes: map[solana.PublicKey]int64{state: net + stateRent},
		})
	}
	leg(10, 30, buyerATA, buyerState)
	leg(11, 31, saverATA, saverState)
	land(22, 50, 20, "execute", tokenRent-stateRent, verify.Transaction{
		Ends:    []verify.SwapEnd{{How: shieldpool.Executed, State: buyerState, WSOL: buyerWSOL, Output: buyerOutput, Recipient: buyerATA}},
		Changes: map[solana.PublicKey]int64{buyerState: -net - stateRent, buyerATA: tokenRent, vault: net},
		Tokens:  map[solana.PublicKey]int64{buyerATA: minimum + 7, vault: -minimum - 7},
	})
	land(23, 60, 21, "execute", 0, verify.Transaction{Failed: true, Ends: []verify.SwapEnd{{How: shieldpool.Executed, State: saverState, Recipient: saverATA}}})
	land(24, 240, 21, "refund", 0, verify.Transaction{
		Ends:    []verify.SwapEnd{{How: shieldpool.Refunded, State: saverState, Recipient: saver}},
		Changes: map[solana.PublicKey]int64{saverState: -net - stateRent, saver: net + stateRent},
	})
}

// transaction finds a transaction by the number of its signature.
func transaction(e *verify.Evidence, n byte) *verify.Transaction {
	at := slices.IndexFunc(e.Transactions, func(tx verify.Transaction) bool { return tx.Signature == signature(n) })
	return &e.Transactions[at]
}

// answer finds the last answer to the client of a spend.
func answer(e *verify.Evidence, number int) *load.Answer {
	at := slices.IndexFunc(e.Records, func(r load.Record) bool { return r.Number == number })
	answers := e.Records[at].Requests[0].Answers
	return &answers[len(answers)-1]
}

// swapFaults are the possible faults of swaps.
func swapFaults() map[string]injectedFault {
	const once, outcome, inTime, left, rents, answers, paid = "swap-ends-once", "swap-outcome-is-true", "swap-ends-in-time", "swaps-leave-nothing",
		"payers-pay-fees-and-rent", "answers-are-true", "recipients-paid-once"
	executed := func(e *verify.Evidence) *verify.Transaction { return transaction(e, 22) }
	refunded := func(e *verify.Evidence) *verify.Transaction { return transaction(e, 24) }
	return map[string]injectedFault{
		"a swap has no end": {
			func(e *verify.Evidence) { executed(e).Ends = nil }, once, "ended 0 times",
		},
		"a swap ended twice": {
			func(e *verify.Evidence) {
				transaction(e, 23).Failed = false
			}, once, "ended 2 times",
		},
		"a swap was executed by a transaction that failed": {
			func(e *verify.Evidence) { executed(e).Failed = true }, once, "ended 0 times",
		},
		"a swap paid less than the minimum": {
			func(e *verify.Evidence) { executed(e).Tokens[buyerATA] = minimum - 1 }, once, "the user's minimum is 1000",
		},
		"a swap paid a stranger's account": {
			func(e *verify.Evidence) { executed(e).Ends[0].Recipient = saverATA }, once, "paid another token account",
		},
		"a swap paid tokens and a part of the lamports": {
			func(e *verify.Evidence) { executed(e).Changes[buyer] = 1 }, once, "has 1007 and 1 lamports",
		},
		"a swap paid its tokens twice": {
			func(e *verify.Evidence) { refunded(e).Tokens = map[solana.PublicKey]int64{buyerATA: 3} }, once, "has 1010 and 0 lamports",
		},
		"a refunded swap paid tokens too": {
			func(e *verify.Evidence) { executed(e).Tokens[saverATA] = 1 }, once, "and 1 tokens",
		},
		"a swap's state got a lamport too little": {
			func(e *verify.Evidence) { transaction(e, 10).Changes[buyerState]-- }, once, "into its state, expected",
		},
		"a refund kept a lamport": {
			func(e *verify.Evidence) { refunded(e).Changes[saver]-- }, once, "but the recipient has",
		},
		"a refund paid less than the state held": {
			func(e *verify.Evidence) { refunded(e).Changes[saverState]++ }, once, "were refunded",
		},
		"a refund went to another wallet": {
			func(e *verify.Evidence) { refunded(e).Ends[0].Recipient = other }, once, "refunded to another wallet",
		},
		"a refund did not reach the wallet": {
			func(e *verify.Evidence) { delete(refunded(e).Changes, saver) }, paid, "got 0 lamports",
		},
		"an executed swap paid lamports too": {
			func(e *verify.Evidence) { executed(e).Changes[buyer] = 9 }, paid, "got 9 lamports, expected 0",
		},
		"a swap landed with other terms": {
			func(e *verify.Evidence) { transaction(e, 10).Calls[0].Swap.MinOutput-- }, "outcome-is-true", "other terms of a swap",
		},
		"a swap landed as a withdrawal": {
			func(e *verify.Evidence) { transaction(e, 10).Calls[0].Swap = nil }, "outcome-is-true", "other terms of a swap",
		},
		"a landed swap has no execution": {
			func(e *verify.Evidence) { e.Executions = e.Executions[1:] }, outcome, "has no execution",
		},
		"a swap was executed, and the database says refunded": {
			func(e *verify.Evidence) { e.Executions[0].Phase = "refunded" }, outcome, "phase refunded",
		},
		"a swap was executed, and the database has no end": {
			func(e *verify.Evidence) { e.Executions[0].Ended = false }, outcome, "ended false",
		},
		"a swap was executed by another transaction than the database says": {
			func(e *verify.Evidence) { e.Executions[0].Signature = signature(24) }, outcome, "was executed by",
		},
		"an execution failed although its swap was executed": {
			func(e *verify.Evidence) { e.Executions[0].State = "failed" }, outcome, "its execution is failed",
		},
		"a swap failed although its execution completed": {
			func(e *verify.Evidence) { e.Submissions[3].State = "failed" }, outcome, "is failed, and its execution",
		},
		"an execution has no swap": {
			func(e *verify.Evidence) { e.Executions[0].Swap = id(99) }, outcome, "which the database does not have",
		},
		"/status contradicts the chain": {
			func(e *verify.Evidence) {
				status := e.SwapAnswers[id(11)]
				status.Refund, status.Execution = "", status.Refund
				e.SwapAnswers[id(11)] = status
			}, outcome, "/status says",
		},
		"/status does not answer for a swap": {
			func(e *verify.Evidence) { delete(e.SwapAnswers, id(10)) }, outcome, "/status says",
		},
		"an execution never became final": {
			func(e *verify.Evidence) { e.Executions[0].Finalized = false }, "accepted-is-final", "the execution of request",
		},
		"a client was told that an executed swap was refunded": {
			func(e *verify.Evidence) {
				a := answer(e, 10)
				a.State, a.Code, a.Phase, a.Finalized = "failed", "swap_refunded", "refunded", false
			}, answers, "is refunded by",
		},
		"a client was told of another execution": {
			func(e *verify.Evidence) { answer(e, 10).SwapSignature = signature(99).String() }, answers, "is executed by",
		},
		"a client was told of a final execution that a fork undid": {
			func(e *verify.Evidence) {
				answer(e, 10).SwapSignature = signature(99).String()
				e.Undone = map[solana.Signature]bool{signature(99): true}
			}, answers, "is executed by",
		},
		"a client was told of another first leg": {
			func(e *verify.Evidence) { answer(e, 11).Signature = signature(99).String() }, answers, "the first leg of swap",
		},
		"a client was told a wrong code for a refunded swap": {
			func(e *verify.Evidence) { answer(e, 11).Code = "root_not_found" }, answers, "failed with root_not_found",
		},
		"a client was told that a swap is final, but not how it ended": {
			func(e *verify.Evidence) { answer(e, 10).Phase = "quoted" }, answers, "without saying how it ended",
		},
		"a swap was refunded before its timeout": {
			func(e *verify.Evidence) { refunded(e).Slot = 31 + timeout - 1 }, inTime, "before its timeout",
		},
		"a swap was refunded long after its timeout": {
			func(e *verify.Evidence) { refunded(e).Slot = 31 + timeout + grace + 1 }, inTime, "51 slots past its timeout",
		},
		"a swap was executed long after its timeout": {
			func(e *verify.Evidence) { executed(e).Slot = 30 + timeout + grace + 1 }, inTime, "51 slots past its timeout",
		},
		"a state is left": {
			func(e *verify.Evidence) {
				e.LeftAccounts = []verify.LeftAccount{{Key: saverState, What: "swap state", Amount: 3}}
			}, left, "swap state, 3 lamports",
		},
		"the market got a lamport less": {
			func(e *verify.Evidence) { e.Vault.Closing-- }, left, "the market got 94699999 lamports, and the executed swaps held 94700000",
		},
		"a router took a lamport from the payer": {
			func(e *verify.Evidence) { executed(e).Changes[payer]-- }, rents, "purpose execute, took",
		},
		"an execution kept a part of an account's rent": {
			func(e *verify.Evidence) { executed(e).Changes[buyerOutput]++ }, rents, "purpose execute, took",
		},
		"a refund paid the payer": {
			func(e *verify.Evidence) { refunded(e).Changes[payer] += stateRent }, rents, "purpose refund, took",
		},
		"a failed execution cost rent": {
			func(e *verify.Evidence) { transaction(e, 23).Changes[payer]-- }, rents, "took 1 lamports of rent from its payer, expected 0",
		},
		"a transaction paid another payer": {
			func(e *verify.Evidence) {
				e.Payers = append(e.Payers, verify.Payer{Key: other})
				executed(e).Changes[other] = 5
			}, rents, "changed payer " + other.String() + " by 5 lamports",
		},
		"an execution paid lamports to an account": {
			func(e *verify.Evidence) { executed(e).Changes[buyerOutput] = 7 }, rents, "purpose execute, took",
		},
		"a transaction does not do what its attempt says": {
			func(e *verify.Evidence) { refunded(e).Ends = nil }, rents, "purpose refund, took",
		},
		"the relays executed and refunded the same swap": {
			func(e *verify.Evidence) {
				transaction(e, 23).Failed = false
			}, "one-spend", "landed twice",
		},
	}
}

// setExecutionRent changes the rent that the execution took from its payer.
func setExecutionRent(e *verify.Evidence, lamports int64) {
	const before = tokenRent - stateRent
	transaction(e, 22).Changes[payer] = -fee - lamports
	e.Payers[0].Closing -= uint64(lamports - before)
	e.Entries[slices.IndexFunc(e.Entries, func(entry verify.Entry) bool { return entry.Signature == signature(22) })].Rent = lamports
}

// noSwapFaults are correct events of swaps that look like faults.
func noSwapFaults() map[string]func(*verify.Evidence) {
	return map[string]func(*verify.Evidence){
		"a client saw an execution that a fork undid, and then the refund": func(e *verify.Evidence) {
			seen := *answer(e, 10)
			seen.RequestID, seen.Signature, seen.SwapSignature, seen.Finalized = id(11), signature(11).String(), signature(99).String(), false
			answers := &e.Records[len(e.Records)-1].Requests[0].Answers
			*answers = append(*answers, seen)
			e.Undone = map[solana.Signature]bool{signature(99): true}
		},
		"strangers made the accounts before the execution": func(e *verify.Evidence) {
			tx := transaction(e, 22)
			delete(tx.Changes, buyerATA)
			tx.Changes[buyerWSOL], tx.Changes[buyerOutput] = -tokenRent, -tokenRent
			setExecutionRent(e, -stateRent-2*tokenRent)
		},
		"a stranger wrapped the lamports before the execution": func(e *verify.Evidence) {
			tx := transaction(e, 22)
			tx.Changes[buyerState], tx.Changes[buyerWSOL] = -stateRent, -net-tokenRent
			setExecutionRent(e, -stateRent)
		},
		"a stranger executed a swap": func(e *verify.Evidence) {
			tx := transaction(e, 22)
			tx.Payer = solana.PublicKey{9}
			tx.Changes[tx.Payer], tx.Changes[payer] = tx.Changes[payer], 0
			e.Payers[0].Closing += fee + tokenRent - stateRent
			e.Attempts = slices.DeleteFunc(e.Attempts, func(a verify.Attempt) bool { return a.Signature == signature(22) })
			e.Entries = slices.DeleteFunc(e.Entries, func(entry verify.Entry) bool { return entry.Signature == signature(22) })
		},
		"a stranger refunded a swap": func(e *verify.Evidence) {
			refund := transaction(e, 24)
			refund.Payer = solana.PublicKey{9}
			refund.Changes[refund.Payer], refund.Changes[payer] = -fee, 0
			e.Payers[0].Closing += fee
			e.Attempts = e.Attempts[:len(e.Attempts)-1]
			e.Entries = e.Entries[:len(e.Entries)-1]
		},
		"the lamports of a refunded swap were wrapped": func(e *verify.Evidence) {
			refund, wsol := transaction(e, 24), solana.PublicKey{5, 3}
			refund.Ends[0].WSOL = wsol
			refund.Changes[saverState], refund.Changes[wsol], refund.Changes[saver] = -stateRent, -net-tokenRent, net+stateRent+tokenRent
		},
		"a swap landed on a fork, and never again": func(e *verify.Evidence) {
			e.Submissions = append(e.Submissions, verify.Submission{ID: id(12), State: "failed", Code: "root_not_found", Inputs: inputs(12, -gross), Recipient: solana.PublicKey{8}, Swap: terms(solana.PublicKey{8, 1}), CreatedAt: at(1), CompletedAt: at(8)})
			e.Submissions[len(e.Submissions)-1].Inputs.Root = root(9)
			e.Executions = append(e.Executions, verify.Execution{ID: id(22), Swap: id(12), State: "failed", Code: "root_not_found", Phase: "funded", Ended: true})
		},
	}
}
