package swap

import "github.com/relaypool/relaypool/relay/internal/txmgr"

// stateFact is what the chain shows of the swap state.
type stateFact int

const (
	// stateMissing: the program owns no such account. Lamports of a stranger's at
	// its address are not one.
	stateMissing stateFact = iota
	// stateHeld: it holds the lamports, under the terms that the user proved.
	stateHeld
	// stateWrong: it is there, and says something else than the user proved.
	stateWrong
)

// accountFact is what the chain shows of a token account.
type accountFact int

const (
	accountMissing accountFact = iota
	accountReady
	// accountFrozen: the mint's authority froze it, so that it neither gives nor takes.
	accountFrozen
	// accountUnusable: something else is at its address, or its owner gave it away.
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
	// quoteMeets: its least is not below the user's minimum. quoteShort: it is.
	quoteMeets
	quoteShort
)

// facts are what is known of a swap between its legs, all of the chain at one slot.
type facts struct {
	slot, timeout uint64
	state         stateFact
	end           endFact
	// young says that a fork may still undo the swap's beginning.
	young bool
	// walletKnown says that the wallet is known whose token account the terms name.
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

// step is what is done next.
type step int

const (
	// stepWait: nothing, for the reason that comes with it.
	stepWait step = iota
	// stepFindEnd looks for the transaction that ended the swap.
	stepFindEnd
	// stepEnd: it is found.
	stepEnd
	// stepQuote asks the router.
	stepQuote
	// stepExecute and stepRefund draft a transaction. An execution makes the accounts
	// that are missing, and nothing else ever does: what stands there before it is
	// anybody's, because the recipient may close his account, and whoever executes
	// first gets the rent of the others.
	stepExecute
	stepRefund
)

// slotsBeforeTimeout are those before the timeout in which no execution begins: it would
// hardly land, and the refund would have to wait until it is dead. A confirmed
// slot is a few behind the chain's newest, too.
const slotsBeforeTimeout = 4

// plan is the one place that says what follows from what is known; nothing that
// was signed before can land any more. reason is set with stepWait alone.
//
// A state that holds lamports is refunded from its timeout on whatever else is
// wrong, but for a wallet that is not known. Before, it is executed, and whatever
// keeps it from that is waited for.
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

// planEnd is plan for a swap without a state. It never leads to a draft: it was
// settled, or it has not begun on the fork that the endpoint is on.
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
