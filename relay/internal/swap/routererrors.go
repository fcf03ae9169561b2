package swap

import (
	"errors"
	"slices"
	"time"
)

// ErrRouterUnavailable matches every *RouterUnavailable: there is no usable answer, and
// asking again later may bring one.
var ErrRouterUnavailable = errors.New("swap router is unavailable")

// The kinds of RouterUnavailable: a fixed set, fit for a metric's label.
const (
	// FaultTimeout: no answer within the client's own limit.
	FaultTimeout = "timeout"
	// FaultConnection: the router was not reached (name lookup, TCP or TLS), or it closed
	// the connection.
	FaultConnection = "connection"
	// FaultRateLimited: HTTP 429.
	FaultRateLimited = "rate_limited"
	// FaultServerError: HTTP 5xx.
	FaultServerError = "server_error"
	// FaultRejected: another HTTP status that refuses every call alike, such as
	// 401, 403 or a redirect: the URL or the key is wrong.
	FaultRejected = "rejected"
	// FaultBadResponse: the answer does not have the form that the API documents.
	FaultBadResponse = "bad_response"
	// FaultBusy: the call was not made, because the relay's own limit of concurrent calls
	// or of requests a second was reached.
	FaultBusy = "busy"
	// FaultBreakerOpen: the call was not made, because the last calls failed or the router
	// asked for a pause.
	FaultBreakerOpen = "breaker_open"
	// FaultCancelled: the caller stopped waiting.
	FaultCancelled = "cancelled"
)

// RouterFaults lists every kind of RouterUnavailable.
func RouterFaults() []string {
	return []string{
		FaultTimeout, FaultConnection, FaultRateLimited, FaultServerError, FaultRejected,
		FaultBadResponse, FaultBusy, FaultBreakerOpen, FaultCancelled,
	}
}

// RouterUnavailable is the error of a call without a usable answer.
type RouterUnavailable struct {
	// Kind is one of the constants above.
	Kind string
	// Detail is what a person needs to know in addition to Kind, such as the HTTP status. It
	// has only the relay's own words, and may be empty.
	Detail string
	// RetryAfter is how long the router or the breaker asks to wait before the next call; 0
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

// Is makes every RouterUnavailable match ErrRouterUnavailable.
func (e *RouterUnavailable) Is(target error) bool { return target == ErrRouterUnavailable }

// Unwrap gives the context's error when the caller stopped waiting, else nil.
func (e *RouterUnavailable) Unwrap() error { return e.Err }

// The codes of NoRoute: a fixed set, fit for a metric's label.
const (
	// CodeNoRoutes and CodeNoRoute: no path leads from one mint to the other, or none of
	// the kind that was asked for.
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
	// CodeNoThreshold: the router cannot compute the threshold for this amount and slippage.
	CodeNoThreshold = "CANNOT_COMPUTE_OTHER_AMOUNT_THRESHOLD"
	// CodeNotBuilt: the router could not make the quote's instructions; another quote may
	// work.
	CodeNotBuilt = "FAILED_TO_GET_SWAP_AND_ACCOUNT_METAS"
	// CodeTooManyAccounts: the router does not accept this MaxAccounts.
	CodeTooManyAccounts = "MAX_ACCOUNT_GREATER_THAN_MAX"
	// CodeTooLarge is the relay's own code: no transaction can hold the instruction. A
	// quote for fewer accounts, or for a single market, may fit.
	CodeTooLarge = "TOO_LARGE"
	// CodeOther is the relay's own code: the router refuses with an unknown code, which
	// is dropped because it may repeat the request.
	CodeOther = "OTHER"
)

// NoRouteCodes lists every code of NoRoute.
func NoRouteCodes() []string {
	return []string{
		CodeNoRoutes, CodeNoRoute, CodeNotAllIn, CodeNotTradable, CodeNoMarket, CodeNotSupported,
		CodeCircular, CodeNoThreshold, CodeNotBuilt, CodeTooManyAccounts, CodeTooLarge, CodeOther,
	}
}

// NoRoute is a router's answer that it offers no such swap. It may offer one later.
type NoRoute struct {
	// Code is one of the constants above.
	Code string
}

// NewNoRoute makes a NoRoute from the router's code, or with CodeOther when the code is
// unknown.
func NewNoRoute(code string) *NoRoute {
	if !slices.Contains(NoRouteCodes(), code) {
		code = CodeOther
	}
	return &NoRoute{Code: code}
}

// Error gives the code.
func (e *NoRoute) Error() string { return "the swap router has no such swap: " + e.Code }

// The values of RejectedRoute.What: a fixed set, fit for a metric's label.
const (
	// RejectedInputMint, RejectedOutputMint, RejectedAmount, RejectedMode and
	// RejectedSlippage: the quote answers another request.
	RejectedInputMint  = "input_mint"
	RejectedOutputMint = "output_mint"
	RejectedAmount     = "amount"
	RejectedMode       = "mode"
	RejectedSlippage   = "slippage"
	// RejectedThreshold: the quote's threshold is above its expected output.
	RejectedThreshold = "threshold"
	// RejectedProgram: the instruction calls another program than the router's.
	RejectedProgram = "program"
	// RejectedSigner: the instruction wants a signature other than the user's.
	RejectedSigner = "signer"
	// RejectedAccount: the instruction names an account that no router may name, such as
	// the fee payer's, or does not write the swap's own token accounts.
	RejectedAccount = "account"
	// RejectedTable: a lookup table does not exist or is not active, or there are too
	// many lookup tables.
	RejectedTable = "lookup_table"
)

// RejectedReasons lists every value of RejectedRoute.What.
func RejectedReasons() []string {
	return []string{
		RejectedInputMint, RejectedOutputMint, RejectedAmount, RejectedMode, RejectedSlippage, RejectedThreshold,
		RejectedProgram, RejectedSigner, RejectedAccount, RejectedTable,
	}
}

// RejectedRoute is an answer that contradicts the request, or uses accounts that no
// router may use. It is broken or malicious, and is never signed.
type RejectedRoute struct {
	// What is one of the constants above.
	What string
	// Router is the name of the router that gave the answer; empty when not known.
	Router string
}

// Error names what is rejected.
func (e *RejectedRoute) Error() string {
	return "the swap router's answer contradicts the request: " + e.What
}
