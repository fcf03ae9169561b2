package swap

import "github.com/relaypool/relaypool/relay/internal/txmgr"

// stateFact is what the chain shows of the swap state.
type stateFact int

const (
	// stateMissing: no account of the program is at the state's address. Lamports that a
	// stranger sent there do not count.
	stateMissing stateFact = iota
	// stateHeld: the state holds the lamports, under the terms that the user proved.
	stateHeld
	// stateWrong: the account exists, but it is malformed, its terms are not those that the
	// user proved, or its creation slot and timeout slot are impossible.
	stateWrong
)

// accountFact is what the chain shows of a token account.
type accountFact int

const (
	accountMissing accountFact = iota
	accountReady
	// accountFrozen: the mint's authority froze the account, so that it neither sends nor
	// receives tokens.
	accountFrozen
	// accountUnusable: the account at the address is not a token account of the
	// expected owner and mint.
	accountUnusable
)

// endFact is whether the history shows how a swap ended, once its state is missing.
type endFact int

const (
	endUnread endFact = iota
	endFound
	endUnknown
)

// quoteFact is what the router's quote says.
type quoteFact int

const (
	quoteUnread quoteFact = iota
	// quoteMeets: the threshold of the quote is at least the user's minimum. quoteShort: it
	// is lower.
	quoteMeets
	quoteShort
)

// facts are what is known of a swap between its legs, all read at one slot.
type facts struct {
	slot, timeout uint64
	// lastSlots is the number of slots before the timeout in which no execution starts.
	lastSlots uint64
	state     stateFact
	end       endFact
	// recentlyFunded says that a fork may still undo the first leg.
	recentlyFunded bool
	// walletKnown says that it is known which wallet owns the recipient's token account.
	walletKnown bool
	// wsol and output are the state's token accounts, recipient is the recipient's.
	wsol, output, recipient accountFact
	quote                   quoteFact
}

// missing counts the token accounts that have to be created.
func (f *facts) missing() (n uint64) {
	for _, a := range []accountFact{f.wsol, f.output, f.recipient} {
		if a == accountMissing {
			n++
		}
	}
	return n
}

// step is the next action.
type step int

const (
	// stepWait does nothing yet, for the reason that plan returns.
	stepWait step = iota
	// stepFindEnd searches the history for the transaction that ended the swap.
	stepFindEnd
	// stepEnd reports the end that was found.
	stepEnd
	// stepQuote asks the router for a price.
	stepQuote
	// stepExecute and stepRefund draft a transaction. Only the execution itself creates
	// missing token accounts. If they were created earlier, others could collect their
	// rent: the recipient can close the recipient's account, and whoever executes first
	// gets the rent of the state's accounts.
	stepExecute
	stepRefund
)

// plan is the one place that decides the next step from the facts. It assumes that no
// earlier attempt can land any more. With stepWait it also returns the reason for the wait.
//
// From the timeout on, a swap whose state exists is refunded regardless of other faults,
// unless the wallet is not known. Before the timeout the swap is executed, and it waits
// while something prevents that.
func plan(f *facts) (next step, reason string) {
	switch wait := f.waitReason(); {
	case f.state == stateMissing:
		return planEnd(f)
	case !f.walletKnown:
		return stepWait, ReasonWalletUnknown
	case f.slot >= f.timeout:
		return stepRefund, ""
	case wait != "":
		return stepWait, wait
	case f.quote == quoteUnread:
		return stepQuote, ""
	case f.quote == quoteShort:
		return stepWait, ReasonPrice
	default:
		return stepExecute, ""
	}
}

// planEnd is plan for a swap whose state is missing. It never leads to a draft: either the
// swap has ended, or the endpoint is on a fork on which the first leg has not landed.
func planEnd(f *facts) (next step, reason string) {
	switch {
	case f.end == endUnread:
		return stepFindEnd, ""
	case f.end == endFound:
		return stepEnd, ""
	case f.recentlyFunded:
		return stepWait, ReasonStateMissing
	default:
		return stepWait, txmgr.HoldHistory
	}
}
