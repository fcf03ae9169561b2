package verify

import (
	"fmt"
	"slices"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// purposeTransact is the purpose of attempts for a client's request.
	purposeTransact = "transact"
	// PurposeMove is the purpose of relay sweep's transactions, which move lamports
	// from one payer to others when keys are rotated.
	PurposeMove = "move"
)

// heldLamports returns the lamports that a refund's transaction took out of a swap's accounts.
func (s *SwapEnd) heldLamports(tx *Transaction) int64 {
	lamports := -tx.Changes[s.State]
	if !s.WSOL.IsZero() {
		lamports -= tx.Changes[s.WSOL]
	}
	return lamports
}

type swap struct {
	leg  *Transaction
	call *PoolCall
	ends []end
}

type end struct {
	tx *Transaction
	*SwapEnd
}

// swapsOf finds the swaps whose first leg landed, by their states' addresses.
func swapsOf(e *Evidence) map[solana.PublicKey]*swap {
	out := make(map[solana.PublicKey]*swap)
	for i := range e.Transactions {
		tx := &e.Transactions[i]
		if tx.Failed {
			continue
		}
		for k := range tx.Calls {
			if call := &tx.Calls[k]; call.Swap != nil {
				out[call.Recipient] = &swap{leg: tx, call: call}
			}
		}
		for k := range tx.Ends {
			if s := out[tx.Ends[k].State]; s != nil { // in the chain's order the first leg precedes the end
				s.ends = append(s.ends, end{tx, &tx.Ends[k]})
			}
		}
	}
	return out
}

// swapsEndOnce checks the promise to the user: either the tokens or the lamports,
// completely, and never both.
func swapsEndOnce(e *Evidence, r *Result) {
	wallets := make(map[solana.PublicKey]solana.PublicKey) // by token account
	for i := range e.Submissions {
		if s := &e.Submissions[i]; s.Swap != nil {
			wallets[s.Swap.RecipientATA] = s.Recipient
		}
	}
	lamports, tokens := make(map[solana.PublicKey]int64), make(map[solana.PublicKey]int64)
	for i := range e.Transactions {
		for key, change := range e.Transactions[i].Changes {
			lamports[key] += change
		}
		for key, change := range e.Transactions[i].Tokens {
			tokens[key] += change
		}
	}
	for state, s := range swapsOf(e) {
		r.Examined++
		name := fmt.Sprintf("the swap of %s, slot %d,", s.leg.Signature, s.leg.Slot)
		net, _ := e.Fees.Net(s.call.Inputs.Gross())
		if got, want := s.leg.Changes[state], int64(net)+s.leg.rentOf(shieldpool.NewAccounts{SwapStates: 1}); got != want { //nolint:gosec // far below 2^63 lamports exist
			r.fault("%s put %d lamports into its state, expected %d", name, got, want)
		}
		if len(s.ends) != 1 {
			r.fault("%s ended %d times, expected once", name, len(s.ends))
			continue
		}
		wallet := wallets[s.call.Swap.RecipientATA]
		s.checkPayment(name, wallet, lamports[wallet], tokens[s.call.Swap.RecipientATA], r)
	}
}

// checkPayment compares the wallet's lamports and its account's tokens, summed over all
// transactions, with the swap's end.
func (s *swap) checkPayment(name string, wallet solana.PublicKey, lamports, tokens int64, r *Result) {
	last := s.ends[0]
	switch last.How {
	case shieldpool.Executed:
		got := last.tx.Tokens[s.call.Swap.RecipientATA]
		if last.Recipient != s.call.Swap.RecipientATA {
			r.fault("%s paid another token account", name)
		}
		if got < 0 || uint64(got) < s.call.Swap.MinOutput {
			r.fault("%s paid %d, and the user's minimum is %d", name, got, s.call.Swap.MinOutput)
		}
		if tokens != got || lamports != 0 {
			r.fault("%s paid %d by its execution, but the recipient has %d and %d lamports", name, got, tokens, lamports)
		}
	case shieldpool.Refunded:
		held := last.heldLamports(last.tx)
		if last.Recipient != wallet {
			r.fault("%s was refunded to another wallet", name)
		}
		if paidIn := s.leg.Changes[last.State]; held < paidIn {
			r.fault("%s held %d lamports, and %d were refunded", name, paidIn, held)
		}
		if lamports != held || tokens != 0 {
			r.fault("%s refunded %d lamports, but the recipient has %d and %d tokens", name, held, lamports, tokens)
		}
	}
}

// swapOutcomeIsTrue compares the second legs' rows, and the answers that clients
// can read, with the chain.
func swapOutcomeIsTrue(e *Evidence, r *Result) {
	x := newIndex(e)
	swaps := make(map[solana.Signature]*swap)
	for _, s := range swapsOf(e) {
		swaps[s.leg.Signature] = s
	}
	for i := range e.Submissions {
		s := &e.Submissions[i]
		if s.Swap == nil {
			continue
		}
		r.Examined++
		row, onChain := x.executions[s.ID], swaps[s.Signature]
		switch {
		case s.State != "completed" && row != nil && row.State != "failed":
			r.fault("request %s is %s, and its execution %s is %s", s.ID, s.State, row.ID, row.State)
		case s.State == "completed" && row == nil:
			r.fault("request %s is completed and has no execution", s.ID)
		case s.State == "completed" && onChain != nil && len(onChain.ends) == 1:
			row.compare(&onChain.ends[0], r)
			lastAnswerMatches(e, s, &onChain.ends[0], r)
		}
	}
	for i := range e.Executions {
		if s := x.submissions[e.Executions[i].Swap]; s == nil {
			r.fault("execution %s is of request %s, which the database does not have", e.Executions[i].ID, e.Executions[i].Swap)
		}
	}
}

// compare compares a second leg's row with the transaction that ended the swap.
func (s *Execution) compare(onChain *end, r *Result) {
	if s.State != "completed" || s.Phase != string(onChain.How) || s.Signature != onChain.tx.Signature || !s.Ended {
		r.fault("request %s was %s by %s; its execution is %s, phase %s, ended %t, by %s", s.Swap, onChain.How, onChain.tx.Signature, s.State, s.Phase, s.Ended, s.Signature)
	}
}

// lastAnswerMatches compares the last answer of /status with the chain.
func lastAnswerMatches(e *Evidence, s *Submission, onChain *end, r *Result) {
	want := SwapStatus{Status: "completed", Phase: string(onChain.How), Finalized: true, Signature: s.Signature.String(), Execution: onChain.tx.Signature.String()}
	if onChain.How == shieldpool.Refunded {
		want.Status, want.Code, want.Execution, want.Refund = "failed", "swap_refunded", "", want.Execution
	}
	if got, asked := e.SwapAnswers[s.ID]; !asked || got != want {
		r.fault("request %s: /status says %+v, expected %+v", s.ID, got, want)
	}
}

// swapsEndInTime checks the slot of each end. SwapGrace is how long a relay's lost
// attempts take to expire; until then the relay must not sign anything new.
func swapsEndInTime(e *Evidence, r *Result) {
	for _, s := range swapsOf(e) {
		for _, last := range s.ends {
			r.Examined++
			timeout, slot := s.leg.Slot+e.SwapTimeout, last.tx.Slot
			switch {
			case last.How == shieldpool.Refunded && slot < timeout:
				r.fault("the swap of %s was refunded in slot %d, before its timeout in slot %d", s.leg.Signature, slot, timeout)
			case slot > timeout+e.SwapGrace:
				r.fault("the swap of %s was %s in slot %d, %d slots past its timeout, expected at most %d", s.leg.Signature, last.How, slot, slot-timeout, e.SwapGrace)
			}
		}
	}
}

// noLamportsLeft checks that swaps leave no lamports behind, and that the market got all of
// their lamports: a missing lamport went to an account outside the evidence.
func noLamportsLeft(e *Evidence, r *Result) {
	r.Examined = e.Searched
	for _, l := range e.LeftAccounts {
		r.fault("account %s is left: %s, %d lamports", l.Key, l.What, l.Amount)
	}
	var held uint64
	for _, s := range swapsOf(e) {
		if slices.ContainsFunc(s.ends, func(last end) bool { return last.How == shieldpool.Executed }) {
			net, _ := e.Fees.Net(s.call.Inputs.Gross())
			held += net
		}
	}
	if got := e.Vault.Closing - e.Vault.Opening; got != held {
		r.fault("the market got %d lamports, and the executed swaps held %d", got, held)
	}
}
