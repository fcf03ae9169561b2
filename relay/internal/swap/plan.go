package swap

import "github.com/relaypool/relaypool/relay/internal/txmgr"

// stateFact is what the chain shows of the swap state.
type stateFact int

const (
	// stateMissing: the program owns no such account. Lamports that a stranger sent to
	// its address do not count.
	stateMissing stateFact = iota
	// stateHeld: it holds the lamports, under the terms that the user proved.
	stateHeld
	// stateWrong: it exists, but its terms are not those that the user proved.
	stateWrong
)

// accountFact is what the chain shows of a token account.
type accountFact int

const (
	accountMissing accountFact = iota
	accountReady
	// accountFrozen: the mint's authority froze it, so that it neither gives nor takes.
	accountFrozen
	// accountUnusable: something else is at its address, or its owner has given it away.
	accountUnusable
)

// endFact is what the history says of a swap whose state is missing.
type endFact int

const (
	endUnread endFact = iota
	endFound
	endUnknown
)

// quoteFact is what the router says.
type quoteFact int

const (
	quoteUnread quoteFact = iota
	// quoteMeets: its threshold is at least the user's minimum. quoteShort: it is lower.
	quoteMeets
	quoteShort
)

// facts are what is known of a swap between its legs, all read at one slot.
type facts struct {
	slot, timeout uint64
	state         stateFact
	end           endFact
	// young says that a fork may still undo the first leg.
	young bool
	// walletKnown says that the owner of the token account of the terms is known.
	walletKnown bool
	// wsol and output are the state's token accounts, recipient is the recipient's.
	wsol, output, recipient accountFact
	quote                   quoteFact
}

// missing counts the token accounts that have to be made.
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
	// stepWait: nothing, for the given reason.
	stepWait step = iota
	// stepFindEnd looks for the transaction that ended the swap.
	stepFindEnd
	// stepEnd: it is found.
	stepEnd
	// stepQuote asks the router.
	stepQuote
	// stepExecute and stepRefund draft a transaction. Only an execution makes the missing
	// accounts. Before it, anybody may have put an account there, because the recipient
	// may close his account, and the first to execute gets the rent of the others.
	stepExecute
	stepRefund
)

// slotsBeforeTimeout is the number of slots before the timeout in which no execution
// starts: it would hardly land, and the refund would have to wait until it is dead. A
// confirmed slot is also a few behind the chain's newest.
const slotsBeforeTimeout = 4

// plan is the one place that decides the next step from the facts; no earlier attempt
// can land any more. reason is set with stepWait alone.
//
// From its timeout on, a state that holds lamports is refunded regardless of other faults,
// unless the wallet is not known. Before the timeout it is executed, and the swap waits
// while something prevents that.
func plan(f *facts) (next step, reason string) {
	switch {
	case f.state == stateMissing:
		return planEnd(f)
	case !f.walletKnown:
		return stepWait, ReasonWalletUnknown
	case f.slot >= f.timeout:
		return stepRefund, ""
	case f.state == stateWrong:
		return stepWait, ReasonStateWrong
	case f.slot+slotsBeforeTimeout >= f.timeout:
		return stepWait, ReasonTimeoutNear
	case f.recipient == accountFrozen:
		return stepWait, ReasonRecipientFrozen
	case !usable(f.wsol) || !usable(f.output) || !usable(f.recipient):
		return stepWait, ReasonAccountUnusable
	case f.quote == quoteUnread:
		return stepQuote, ""
	case f.quote == quoteShort:
		return stepWait, ReasonPrice
	default:
		return stepExecute, ""
	}
}

// planEnd is plan for a swap without a state. It never leads to a draft: the swap has
// ended, or it has not begun on the fork that the endpoint is on.
func planEnd(f *facts) (next step, reason string) {
	switch {
	case f.end == endUnread:
		return stepFindEnd, ""
	case f.end == endFound:
		return stepEnd, ""
	case f.young:
		return stepWait, ReasonStateMissing
	default:
		return stepWait, txmgr.HoldHistory
	}
}

func usable(a accountFact) bool { return a == accountReady || a == accountMissing }
