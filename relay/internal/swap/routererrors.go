package swap

import (
	"errors"
	"slices"
	"time"
)

// ErrRouterUnavailable marks an answer that never came or says nothing: asking again
// later may bring one. Every *Unavailable is one.
var ErrRouterUnavailable = errors.New("swap router is unavailable")

// The kinds of Unavailable: a fixed set, fit for a metric's label.
const (
	// FaultTimeout: no answer within the client's own limit.
	FaultTimeout = "timeout"
	// FaultConnection: the router was not reached, or hung up: name lookup, TCP or TLS.
	FaultConnection = "connection"
	// FaultRateLimited: HTTP 429.
	FaultRateLimited = "rate_limited"
	// FaultServerError: HTTP 5xx.
	FaultServerError = "server_error"
	// FaultRejected: another HTTP status that refuses every call alike, such as
	// 401, 403 or a redirect: the URL or the key is wrong.
	FaultRejected = "rejected"
	// FaultBadResponse: the answer is not what the interface says.
	FaultBadResponse = "bad_response"
	// FaultBusy: the relay's own bound of calls at once was reached, so the call
	// was not made.
	FaultBusy = "busy"
	// FaultBreakerOpen: no call was made, because the last ones failed and the
	// router is left alone for a moment.
	FaultBreakerOpen = "breaker_open"
	// FaultCancelled: the caller stopped waiting.
	FaultCancelled = "cancelled"
)

// RouterFaults lists every kind of Unavailable.
func RouterFaults() []string {
	return []string{
		FaultTimeout, FaultConnection, FaultRateLimited, FaultServerError, FaultRejected,
		FaultBadResponse, FaultBusy, FaultBreakerOpen, FaultCancelled,
	}
}

// RouterUnavailable is a call without a usable answer.
type RouterUnavailable struct {
	// Kind is one of the constants above.
	Kind string
	// Detail is more for the operator, such as the HTTP status, always in the
	// relay's own words. Empty when Kind says it all.
	Detail string
	// RetryAfter is how long the router, or the breaker, asks to be left alone; 0
	// when neither does.
	RetryAfter time.Duration
	// Err is the context's error when the caller stopped waiting, else nil.
	Err error
}

// Error gives kind and detail.
func (e *RouterUnavailable) Error() string {
	text := ErrRouterUnavailable.Error() + ": " + e.Kind
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Is makes every Unavailable match ErrRouterUnavailable.
func (e *RouterUnavailable) Is(target error) bool { return target == ErrRouterUnavailable }

// Unwrap gives the context's error, if that is why there is no answer.
func (e *RouterUnavailable) Unwrap() error { return e.Err }

// The codes of NoRoute: a fixed set, fit for a metric's label.
const (
	// CodeNoRoutes and CodeNoRoute: no path leads from one mint to the other, or
	// none that was asked for.
	CodeNoRoutes = "NO_ROUTES_FOUND"
	CodeNoRoute  = "COULD_NOT_FIND_ANY_ROUTE"
	// CodeNotAllIn: the markets are too shallow for the amount.
	CodeNotAllIn = "ROUTE_PLAN_DOES_NOT_CONSUME_ALL_THE_AMOUNT"
	// CodeNotTradable: the router does not trade the mint.
	CodeNotTradable = "TOKEN_NOT_TRADABLE"
	// CodeNoMarket: a market of the route is gone.
	CodeNoMarket = "MARKET_NOT_FOUND"
	// CodeNotSupported: the router does not support the request.
	CodeNotSupported = "NOT_SUPPORTED"
	// CodeCircular: both mints are the same.
	CodeCircular = "CIRCULAR_ARBITRAGE_IS_DISABLED"
	// CodeNoThreshold: the slippage does not fit the amount.
	CodeNoThreshold = "CANNOT_COMPUTE_OTHER_AMOUNT_THRESHOLD"
	// CodeNotBuilt: the quote's instructions could not be made; another quote's may be.
	CodeNotBuilt = "FAILED_TO_GET_SWAP_AND_ACCOUNT_METAS"
	// CodeTooManyAccounts: the router does not accept this MaxAccounts.
	CodeTooManyAccounts = "MAX_ACCOUNT_GREATER_THAN_MAX"
	// CodeTooLarge is the relay's own: the instruction fits no transaction. A quote
	// for fewer accounts, or for a single market, may do.
	CodeTooLarge = "TOO_LARGE"
	// CodeOther is the relay's own: the router refuses with a code that is not
	// known. Its text is left out, since it may repeat the request.
	CodeOther = "OTHER"
)

// NoRouteCodes lists every code of NoRoute.
func NoRouteCodes() []string {
	return []string{
		CodeNoRoutes, CodeNoRoute, CodeNotAllIn, CodeNotTradable, CodeNoMarket, CodeNotSupported,
		CodeCircular, CodeNoThreshold, CodeNotBuilt, CodeTooManyAccounts, CodeTooLarge, CodeOther,
	}
}

// NoRoute is a router's answer that it has no such swap. It may have one later.
type NoRoute struct {
	// Code is one of the constants above.
	Code string
}

// NewNoRoute makes a NoRoute from the router's code, or CodeOther for one that is not known.
func NewNoRoute(code string) *NoRoute {
	if !slices.Contains(NoRouteCodes(), code) {
		code = CodeOther
	}
	return &NoRoute{Code: code}
}

// Error gives the code.
func (e *NoRoute) Error() string { return "the swap router has no such swap: " + e.Code }

// What a Hostile answer contradicts: a fixed set, fit for a metric's label.
const (
	// RejectedInputMint, RejectedOutputMint, RejectedAmount, RejectedMode and
	// RejectedSlippage: the quote is for another question.
	RejectedInputMint  = "input_mint"
	RejectedOutputMint = "output_mint"
	RejectedAmount     = "amount"
	RejectedMode       = "mode"
	RejectedSlippage   = "slippage"
	// RejectedThreshold: the quote promises more at worst than it expects.
	RejectedThreshold = "threshold"
	// RejectedProgram: the instruction is not the router program's.
	RejectedProgram = "program"
	// RejectedSigner: the instruction wants a signature that is not the user's.
	RejectedSigner = "signer"
	// RejectedAccount: the instruction names an account that the router has no
	// business with, such as the fee payer's.
	RejectedAccount = "account"
	// RejectedTable: a lookup table is not what it is said to be.
	RejectedTable = "lookup_table"
)

// RejectedReasons lists everything that Hostile's What can be.
func RejectedReasons() []string {
	return []string{
		RejectedInputMint, RejectedOutputMint, RejectedAmount, RejectedMode, RejectedSlippage, RejectedThreshold,
		RejectedProgram, RejectedSigner, RejectedAccount, RejectedTable,
	}
}

// RejectedRoute is an answer that contradicts the request, or asks for what no router may
// have: broken or malicious, and never to be signed.
type RejectedRoute struct {
	// What is one of the constants above.
	What string
}

// Error says what is contradicted.
func (e *RejectedRoute) Error() string {
	return "the swap router's answer contradicts what was asked: " + e.What
}
