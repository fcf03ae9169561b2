package ledger

import (
	"errors"
	"fmt"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// ErrUnavailable marks an answer that never came or says nothing: what was
// asked is unknown, and a transaction sent may have landed. Unknown is neither
// failure nor zero. Every *Unavailable is one.
var ErrUnavailable = errors.New("chain is unavailable")

// ErrSlotSkipped means that no block was made in the slot.
var ErrSlotSkipped = errors.New("slot has no block")

// ErrBlockPruned means that there was a block and the endpoint no longer has
// it: its history is too short, and an archive endpoint has to be asked.
var ErrBlockPruned = errors.New("block is before the endpoint's history: configure an RPC endpoint with a longer one")

// Unavailable is a call of which the outcome is not known.
type Unavailable struct {
	// Method is the RPC method; Kind says what came instead of an answer, such
	// as timeout, connection, rate_limited or http_502. Both are from fixed sets.
	Method, Kind string
	// Detail is more for the operator; it never holds the endpoint's URL. Empty when Kind says it all.
	Detail string
}

// Error gives method and kind.
func (e *Unavailable) Error() string {
	if e.Detail == "" {
		return fmt.Sprintf("%s: %v: %s", e.Method, ErrUnavailable, e.Kind)
	}
	return fmt.Sprintf("%s: %v: %s: %s", e.Method, ErrUnavailable, e.Kind, e.Detail)
}

// Is makes every Unavailable match ErrUnavailable.
func (e *Unavailable) Is(target error) bool { return target == ErrUnavailable }

// RPCError is an answer that refuses the call itself: the endpoint does not
// know the method or does not take the parameters. Asking again does not help.
type RPCError struct {
	Method string
	// Code is JSON-RPC's, negative; Message is the endpoint's.
	Code    int
	Message string
}

// Error gives method, code and message.
func (e *RPCError) Error() string {
	return fmt.Sprintf("%s: the RPC endpoint refuses the call with code %d: %s", e.Method, e.Code, e.Message)
}

// SendError is a transaction that an endpoint refused before forwarding it:
// this send put nothing on the chain. Earlier sends of the same bytes may have.
type SendError struct {
	Err *shieldpool.TransactionError
}

// Error gives the transaction's error.
func (e *SendError) Error() string {
	return "the RPC endpoint refuses the transaction: " + e.Err.Error()
}

// Unwrap gives the transaction's error.
func (e *SendError) Unwrap() error { return e.Err }
