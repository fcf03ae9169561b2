package onchain

import (
	"errors"
	"fmt"
	"time"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// ErrUnavailable marks an answer that never came or proves nothing: the result is unknown, and a
// transaction that was sent may have landed. Unknown is neither failure nor zero. Every
// *Unavailable matches ErrUnavailable.
var ErrUnavailable = errors.New("chain is unavailable")

// ErrSlotSkipped means that the endpoint has no block in the slot. The RPC error codes do not
// distinguish a slot without a block from a lost block, so a caller who knows of a
// transaction in the slot has to ask again, or ask another endpoint.
var ErrSlotSkipped = errors.New("slot has no block at this endpoint")

// ErrBlockPruned means that the endpoint no longer has the block: its history is too short.
var ErrBlockPruned = errors.New("block is before the endpoint's history: use an RPC endpoint that keeps a longer one")

// The kinds of Unavailable: a fixed set, fit for a metric's label.
const (
	// KindTimeout: no answer within the client's own limit.
	KindTimeout = "timeout"
	// KindConnection: the endpoint was not reached (name lookup, TCP or TLS), or closed the
	// connection.
	KindConnection = "connection"
	// KindRateLimited: the endpoint answered 429 or its equivalent.
	KindRateLimited = "rate_limited"
	// KindServerError: HTTP 5xx, or a JSON-RPC error whose code does not show what happened.
	KindServerError = "server_error"
	// KindRejected: the URL or its credentials are wrong. The endpoint answered with an HTTP status
	// that no other kind covers, such as 401, 403 or 404, or it serves another chain.
	KindRejected = "rejected"
	// KindBadResponse: the answer is not JSON-RPC, or lacks a required part.
	KindBadResponse = "bad_response"
	// KindNodeBehind: the node is behind the cluster or behind the requested slot.
	KindNodeBehind = "node_behind"
	// KindContradiction: other endpoints' reports, or other reports of the same endpoint,
	// show that the chain cannot have the slot or the block height in the answer. So no
	// part of the answer is used.
	KindContradiction = "contradiction"
	// KindUnverified: an endpoint answered, but the answer is not used until another endpoint
	// gives the same one.
	KindUnverified = "unverified"
	// KindNotYet: the requested block or transaction is not available yet.
	KindNotYet = "not_yet"
	// KindCancelled: the caller stopped waiting.
	KindCancelled = "cancelled"
	// KindBudget: the call was not made, because the relay's own limit of requests a second to the
	// endpoint was reached.
	KindBudget = "budget"
	// KindBreakerOpen: no call was made, because the breakers of all suitable endpoints are
	// open.
	KindBreakerOpen = "breaker_open"
)

// Unavailable is a call whose outcome is not known.
type Unavailable struct {
	// Method is the RPC method; Kind is one of the constants above.
	Method, Kind string
	// Endpoint is the configured name of the endpoint that was asked; empty when several were
	// asked, or only one is configured.
	Endpoint string
	// Detail explains the kind to the operator, for example with the HTTP status. It never contains
	// the endpoint's URL. Empty when Kind says everything.
	Detail string
	// Err is the context's error when the caller stopped waiting, else nil.
	Err error
	// RetryAfter is the pause that the endpoint asks for, or, when several were asked, the time
	// until one of them may be asked again; 0 when neither is known.
	RetryAfter time.Duration
	// Slot is the slot that the node has reached, if it is behind; 0 when unknown.
	Slot uint64
	// Shared is true if a call of the same request has failed with it, and was told first.
	Shared bool
}

// Error returns method, endpoint, kind and detail.
func (e *Unavailable) Error() string {
	if e.Detail == "" {
		return fmt.Sprintf("%s: %v: %s", callName(e.Method, e.Endpoint), ErrUnavailable, e.Kind)
	}
	return fmt.Sprintf("%s: %v: %s: %s", callName(e.Method, e.Endpoint), ErrUnavailable, e.Kind, e.Detail)
}

// callName names a call: the method, and the endpoint if there is a choice.
func callName(method, endpoint string) string {
	if endpoint == "" {
		return method
	}
	return method + " at " + endpoint
}

// Is makes every Unavailable match ErrUnavailable.
func (e *Unavailable) Is(target error) bool { return target == ErrUnavailable }

// Unwrap returns the context's error if that is why there is no answer.
func (e *Unavailable) Unwrap() error { return e.Err }

// Malformed returns the error for a result that can be decoded, but does not fit the call.
func Malformed(method, format string, args ...any) error {
	return &Unavailable{Method: method, Kind: KindBadResponse, Detail: fmt.Sprintf(format, args...)}
}

// CheckSlot refuses an answer from before minContextSlot. The check is needed, because some
// endpoints do not pass minContextSlot on to their nodes.
func CheckSlot(method string, slot, minContextSlot uint64) error {
	if slot >= minContextSlot {
		return nil
	}
	return &Unavailable{
		Method: method, Kind: KindNodeBehind, Slot: slot,
		Detail: fmt.Sprintf("answer is of slot %d, expected %d or later", slot, minContextSlot),
	}
}

// KindOf returns the kind of an Unavailable; empty for any other error.
func KindOf(err error) string {
	var u *Unavailable
	if errors.As(err, &u) {
		return u.Kind
	}
	return ""
}

// Transient reports whether the same read may succeed in a moment.
func Transient(err error) bool {
	kind := KindOf(err)
	return kind != "" && kind != KindRejected && kind != KindCancelled
}

// RPCError is an answer that refuses the call itself: the endpoint does not know the method
// or does not accept the parameters. Asking again does not help.
type RPCError struct {
	Method string
	// Endpoint is the configured name of the endpoint; empty when only one is configured.
	Endpoint string
	// Code is the JSON-RPC error code. Message is the endpoint's message, or empty.
	Code    int
	Message string
}

// Error returns method, endpoint, code and message.
func (e *RPCError) Error() string {
	text := fmt.Sprintf("%s: the RPC endpoint refuses the call with code %d", callName(e.Method, e.Endpoint), e.Code)
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// SendError reports that an endpoint refused a transaction instead of forwarding it. So this send
// put nothing on the chain, but an earlier send of the same bytes may have.
type SendError struct {
	Err *shieldpool.TransactionError
}

// Error returns a text with the transaction's error.
func (e *SendError) Error() string {
	return "the RPC endpoint refuses the transaction: " + e.Err.Error()
}

// Unwrap returns the transaction's error.
func (e *SendError) Unwrap() error { return e.Err }
