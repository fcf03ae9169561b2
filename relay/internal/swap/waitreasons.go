package swap

import (
	"errors"
	"time"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// The reasons for which a swap is deferred, in addition to txmgr.HoldHistory. The set is
// fixed, because a reason is stored with the swap, shown by `relay swaps`, and used as a
// metric's label.
const (
	// ReasonPrice: the market gives less than the user's minimum.
	ReasonPrice = "swap_price"
	// ReasonNoRoute: the router has no route between the two mints.
	ReasonNoRoute = "no_route"
	// ReasonRouterUnavailable: the router does not answer.
	ReasonRouterUnavailable = "router_unavailable"
	// ReasonRouteRejected: the router's answer must not be signed.
	ReasonRouteRejected = "router_hostile"
	// ReasonRouteTooLarge: no route of the router fits a transaction.
	ReasonRouteTooLarge = "swap_route_too_large"
	// ReasonQuoteStale: the quote was too old before it could be signed.
	ReasonQuoteStale = "swap_quote_stale"
	// ReasonRecipientFrozen: the mint's authority froze the recipient's account.
	ReasonRecipientFrozen = "swap_recipient_frozen"
	// ReasonAccountUnusable: a token account of the swap is frozen, or does not have
	// the expected owner and mint.
	ReasonAccountUnusable = "swap_account_unusable"
	// ReasonWalletUnknown: it is not known which wallet owns the recipient's token account.
	ReasonWalletUnknown = "swap_wallet_unknown"
	// ReasonStateMissing: the swap state does not exist, and no end of the swap is known.
	ReasonStateMissing = "swap_state_missing"
	// ReasonStateWrong: the swap state differs from what the user proved.
	ReasonStateWrong = "swap_state_wrong"
	// ReasonExecutionFailed and ReasonRefundFailed: the drafted transaction would fail.
	ReasonExecutionFailed = "swap_execution_failed"
	ReasonRefundFailed    = "swap_refund_failed"
	// ReasonTimeoutNotReached: the program refuses the refund as too early.
	ReasonTimeoutNotReached = "swap_timeout_not_reached"
	// ReasonTimeoutNear: too few slots are left to execute the swap before its timeout.
	ReasonTimeoutNear = "swap_timeout_near"
)

// Reasons lists every reason for which a swap can be deferred.
func Reasons() []string {
	return []string{
		ReasonPrice, ReasonNoRoute, ReasonRouterUnavailable, ReasonRouteRejected, ReasonRouteTooLarge, ReasonQuoteStale,
		ReasonRecipientFrozen, ReasonAccountUnusable, ReasonWalletUnknown, ReasonStateMissing, ReasonStateWrong,
		ReasonExecutionFailed, ReasonRefundFailed, ReasonTimeoutNotReached, ReasonTimeoutNear,
		txmgr.HoldHistory,
	}
}

// waitReason returns what prevents an execution before the timeout, or "" if nothing does as far as
// the chain shows. It reads neither the wallet nor the quote: see plan.
func (f *facts) waitReason() string {
	switch {
	case f.state == stateWrong:
		return ReasonStateWrong
	case f.timeoutNear():
		return ReasonTimeoutNear
	case f.recipient == accountFrozen:
		return ReasonRecipientFrozen
	case !usable(f.wsol) || !usable(f.output) || !usable(f.recipient):
		return ReasonAccountUnusable
	default:
		return ""
	}
}

func usable(a accountFact) bool { return a == accountReady || a == accountMissing }

// causeOf explains a reason, for a deferral that was not caused by a failed call.
func causeOf(reason string) error {
	text, ok := map[string]string{
		ReasonPrice:           "the market gives less than the user's minimum: the relay asks for new quotes until the timeout slot, then refunds the lamports",
		ReasonRouteTooLarge:   "no route of the swap router fits a transaction that also creates the swap's token accounts, not even a direct route",
		ReasonQuoteStale:      "the quote was too old before it could be signed: the router or the RPC is slow",
		ReasonRecipientFrozen: "the recipient's token account is frozen by the mint's authority",
		ReasonAccountUnusable: "a token account of the swap is frozen, or does not have the expected owner and mint",
		ReasonWalletUnknown:   "no known wallet owns the associated token account in the swap's terms: neither the submission's recipient nor the account's owner does",
		ReasonStateMissing:    "the swap state does not exist, and no history shows its end: the first leg may be on another fork",
		ReasonStateWrong:      "the swap state differs from what the user proved: check the program profile's layout; the lamports are refunded after the timeout slot",
		ReasonTimeoutNear:     "the timeout slot came before the execution could be signed",
		txmgr.HoldHistory:     "the swap state is closed, and no endpoint's history goes back far enough to show how the swap ended: give the relay an endpoint with the role archive",
	}[reason]
	if !ok {
		text = reason
	}
	return errors.New(text)
}

// deferral makes and counts a *txmgr.Deferral for the snapshot's swap.
func (s *Planner) deferral(r *snapshot, reason string, cause error) *txmgr.Deferral {
	return s.deferAtMost(r, reason, cause, maxWait)
}

// deferAtMost is deferral with a delay of at most atMost, unless the router asks for a longer one.
func (s *Planner) deferAtMost(r *snapshot, reason string, cause error, atMost time.Duration) *txmgr.Deferral {
	if cause == nil {
		cause = causeOf(reason)
	}
	var atLeast time.Duration
	if u := (*RouterUnavailable)(nil); errors.As(cause, &u) {
		atLeast = u.RetryAfter
	}
	slotsLeft := uint64(0)
	if r.slot < r.timeout {
		slotsLeft = r.timeout - r.slot
	}
	s.observer.SwapDeferred(reason)
	return &txmgr.Deferral{Reason: reason, Delay: delay(s.now().Sub(r.submission.CreatedAt), atLeast, atMost, slotsLeft, s.slotDuration()), Cause: cause}
}
