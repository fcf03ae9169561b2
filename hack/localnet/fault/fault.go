// Package fault says how an RPC endpoint of the local chain misbehaves: rules
// that a test, a drill or a person sets, and the draw that decides, call by
// call, which of them apply. The endpoint itself acts on them.
//
// A draw depends on the injector's seed, the method and how many calls of that
// method came before, and on nothing else: the third getBalance has the same
// fate in every run, however the calls of other methods fall between.
package fault

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Methods that some faults are about.
const (
	methodSend      = "sendTransaction"
	methodBlockhash = "getLatestBlockhash"
	methodHealth    = "getHealth"
	methodStatuses  = "getSignatureStatuses"
	methodSimulate  = "simulateTransaction"
)

// MethodSocket is the method name that stands for opening a WebSocket.
const MethodSocket = "webSocket"

// Health is a false answer of getHealth.
type Health string

// The lies; the empty Health is the truth.
const (
	// HealthOK says ok, however far the node is behind.
	HealthOK Health = "ok"
	// HealthBehind says that the node is behind, though it is not.
	HealthBehind Health = "behind"
)

// Outcome is the outcome that an endpoint reports for every transaction, true or not.
type Outcome string

// The outcomes; the empty Outcome is the truth.
const (
	// OutcomeSucceeds: every signature is final without an error, and every
	// simulation and preflight succeeds.
	OutcomeSucceeds Outcome = "succeeds"
	// OutcomeFails: every signature is final with Rule.Err, and every simulation
	// and preflight ends in it.
	OutcomeFails Outcome = "fails"
)

// Socket is what goes wrong with WebSocket connections.
type Socket string

// The faults of sockets.
const (
	// SocketCut cuts connections: it is drawn once for each connection and slot.
	SocketCut Socket = "cut"
	// SocketSilent keeps the connection and its answers to calls, but loses
	// notifications: it is drawn once for each notification.
	SocketSilent Socket = "silent"
)

// Error is a JSON-RPC error to answer with. The zero Error is none.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// Rule is one way to misbehave. Every field but the first two is an effect, and
// a rule has one or more of them. Of several rules that apply to one call the
// delays add up, the largest lag, the largest lead and the shortest history
// count, and the first that fails the call, or has an outcome, decides how.
type Rule struct {
	// Method is what the rule applies to; "" is every method.
	Method string `json:"method,omitempty"`
	// Probability is the chance that the rule applies to a call, up to 1; 0
	// stands for 1.
	Probability float64 `json:"probability,omitempty"`

	// Latency delays the answer, and Jitter by a random part of it more.
	Latency, Jitter time.Duration `json:"-"`
	// AfterActing lets the call have its effect before it is delayed or fails.
	AfterActing bool `json:"afterActing,omitempty"`
	// At most one of Status, Error, Cut and Hang is set. Status answers with
	// an HTTP status of 400 to 599, in JSON and with the header Retry-After (in
	// whole seconds, rounded up) when RetryAfter is set.
	Status     int           `json:"status,omitempty"`
	RetryAfter time.Duration `json:"-"`
	// Error answers with a JSON-RPC error.
	Error Error `json:"error,omitzero"`
	// Cut closes the connection without an answer.
	Cut bool `json:"cut,omitempty"`
	// Hang gives no answer until the client goes away.
	Hang bool `json:"hang,omitempty"`

	// Drop answers sendTransaction with the signature and forgets the
	// transaction.
	Drop bool `json:"drop,omitempty"`
	// Empty answers as if nothing existed: balance 0, null for accounts,
	// statuses and transactions, and empty lists.
	Empty bool `json:"empty,omitempty"`
	// Lag answers from the state of that many slots ago. More than 128 of them
	// make the node unhealthy, as on Agave.
	Lag uint64 `json:"lag,omitempty"`
	// FrozenBlockhash makes getLatestBlockhash repeat the answer at the time when
	// the rule was set, with its context slot and regardless of minContextSlot,
	// like a cache in front of a node.
	FrozenBlockhash bool `json:"frozenBlockhash,omitempty"`
	// Health is the answer of getHealth, true or not.
	Health Health `json:"health,omitempty"`
	// History serves blocks and transactions of the newest that many blocks
	// only; 0 is no limit.
	History uint64 `json:"history,omitempty"`

	// Ahead is how many slots the node claims beyond the true one: in getSlot, in
	// every context slot and when it checks minContextSlot. A rule that also has
	// a Lag answers from the past and claims to be at the newest slot.
	Ahead uint64 `json:"ahead,omitempty"`
	// HeightAhead is how many blocks the node adds to every block height that it
	// reports, including the last valid height of a blockhash.
	HeightAhead uint64 `json:"heightAhead,omitempty"`
	// SlotAsHeight gives slots in place of block heights, which is 22 million too
	// many on mainnet. A blockhash's last valid height is then its slot plus 150.
	SlotAsHeight bool `json:"slotAsHeight,omitempty"`
	// Outcome is reported for every transaction, and Err is the error if it is a
	// failure: JSON as Agave writes it, such as {"InstructionError":[2,{"Custom":1}]}.
	Outcome Outcome `json:"outcome,omitempty"`
	Err     string  `json:"-"`

	// Socket is a fault of WebSocket connections.
	Socket Socket `json:"socket,omitempty"`
}

// Validate says which field does not fit, and what it should be.
func (r *Rule) Validate() error {
	switch {
	case r.Probability < 0 || r.Probability > 1 || r.Probability != r.Probability:
		return fmt.Errorf("probability is %v, expected more than 0 and up to 1, or none for 1", r.Probability)
	case r.Latency < 0 || r.Jitter < 0 || r.RetryAfter < 0:
		return fmt.Errorf("latency %s, jitter %s and retryAfter %s: expected no negative duration", r.Latency, r.Jitter, r.RetryAfter)
	case r.Status != 0 && (r.Status < http.StatusBadRequest || r.Status > 599):
		return fmt.Errorf("status is %d, expected an HTTP status of 400 to 599", r.Status)
	case r.RetryAfter > 0 && r.Status == 0:
		return errors.New("retryAfter is set without a status that could carry it")
	case r.Error.Code == 0 && r.Error.Message != "":
		return errors.New("error.message is set without an error.code, expected a code other than 0")
	case r.failures() > 1:
		return errors.New("more than one of status, error, cut and hang is set, expected one: use a rule for each")
	case r.AfterActing && r.failures() == 0 && r.Latency == 0 && r.Jitter == 0:
		return errors.New("afterActing is set without latency, jitter, status, error, cut or hang to come after")
	}
	if err := r.validateMethod(); err != nil {
		return err
	}
	return r.validateAnswer()
}

// validateMethod checks that a fault that only some methods can have is not set for another.
func (r *Rule) validateMethod() error {
	switch {
	case r.Drop && r.Method != "" && r.Method != methodSend:
		return fmt.Errorf("drop is for method %s, got %q", methodSend, r.Method)
	case r.FrozenBlockhash && r.Method != "" && r.Method != methodBlockhash:
		return fmt.Errorf("frozenBlockhash is for method %s, got %q", methodBlockhash, r.Method)
	case r.Health != "" && r.Method != "" && r.Method != methodHealth:
		return fmt.Errorf("health is for method %s, got %q", methodHealth, r.Method)
	case r.Outcome != "" && !r.concerns(methodStatuses) && !r.concerns(methodSimulate) && !r.concerns(methodSend):
		return fmt.Errorf("outcome is for method %s, %s or %s, got %q", methodStatuses, methodSimulate, methodSend, r.Method)
	case r.Socket == SocketCut && r.Method != "":
		return fmt.Errorf("socket %q is for whole connections, expected no method, got %q", SocketCut, r.Method)
	}
	return nil
}

// validateAnswer checks the faults that change what is answered.
func (r *Rule) validateAnswer() error {
	switch {
	case r.Health != "" && r.Health != HealthOK && r.Health != HealthBehind:
		return fmt.Errorf("health is %q, expected %q or %q", r.Health, HealthOK, HealthBehind)
	case r.Outcome != "" && r.Outcome != OutcomeSucceeds && r.Outcome != OutcomeFails:
		return fmt.Errorf("outcome is %q, expected %q or %q", r.Outcome, OutcomeSucceeds, OutcomeFails)
	case (r.Err != "") != (r.Outcome == OutcomeFails) || r.Err != "" && !json.Valid([]byte(r.Err)):
		return fmt.Errorf("err and outcome %q go together, and err is a transaction error as Agave writes it, such as {\"InstructionError\":[2,{\"Custom\":1}]}", OutcomeFails)
	case r.Socket != "" && r.Socket != SocketCut && r.Socket != SocketSilent:
		return fmt.Errorf("socket is %q, expected %q or %q", r.Socket, SocketCut, SocketSilent)
	case *r == Rule{Method: r.Method, Probability: r.Probability}:
		return errors.New("the rule has no effect, expected latency, jitter, status, error, cut, hang, drop, empty, lag, frozenBlockhash, health, history, ahead, heightAhead, slotAsHeight, outcome or socket")
	}
	return nil
}

// concerns reports whether the rule applies to a method.
func (r *Rule) concerns(method string) bool { return r.Method == "" || r.Method == method }

// failures counts the ways in which the rule fails a call.
func (r *Rule) failures() (n int) {
	for _, set := range []bool{r.Status != 0, r.Error.Code != 0, r.Cut, r.Hang} {
		if set {
			n++
		}
	}
	return n
}

// Validate says which rule does not fit, counting from 0, and why.
func Validate(rules []Rule) error {
	for i := range rules {
		if err := rules[i].Validate(); err != nil {
			return fmt.Errorf("fault rule %d: %w", i, err)
		}
	}
	return nil
}
