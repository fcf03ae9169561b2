// Package fault says how an RPC endpoint of the local chain misbehaves. A test, a
// drill or a person sets rules. For each call an Injector draws which rules apply,
// and the endpoint acts on the result.
//
// A draw depends only on the injector's seed, the method, the number of earlier
// calls of that method, and the rule's position. The third getBalance therefore has
// the same faults in every run, whatever other methods are called in between.
package fault

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Methods to which some faults are limited.
const (
	methodSend      = "sendTransaction"
	methodBlockhash = "getLatestBlockhash"
	methodHealth    = "getHealth"
	methodStatuses  = "getSignatureStatuses"
	methodSimulate  = "simulateTransaction"
	methodBlock     = "getBlock"
)

// maxUnknownVersionBytes bounds Rule.UnknownVersionBytes.
const maxUnknownVersionBytes = 64 << 20

// MethodSocket is the method name that stands for opening a WebSocket.
const MethodSocket = "webSocket"

// Health is a fixed answer of getHealth. The empty Health is the true answer.
type Health string

// The fixed answers of getHealth.
const (
	// HealthOK answers ok, however far the node is behind.
	HealthOK Health = "ok"
	// HealthBehind answers that the node is behind, even when it is not.
	HealthBehind Health = "behind"
)

// Outcome is an outcome that an endpoint claims for every transaction. The empty
// Outcome is the true outcome.
type Outcome string

// The claimed outcomes.
const (
	// OutcomeSucceeds claims that every signature is final without an error, and
	// that every simulation and preflight succeeds.
	OutcomeSucceeds Outcome = "succeeds"
	// OutcomeFails claims that every signature is final with Rule.Err, and that
	// every simulation and preflight fails with it.
	OutcomeFails Outcome = "fails"
)

// Socket is a fault of WebSocket connections.
type Socket string

// The faults of WebSocket connections.
const (
	// SocketCut cuts connections. It is drawn once for each connection and slot.
	SocketCut Socket = "cut"
	// SocketSilent loses notifications; answers to calls still arrive. It is drawn
	// once for each notification.
	SocketSilent Socket = "silent"
)

// Error is a JSON-RPC error to answer with. The zero Error means no error.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// Rule is one way to misbehave. All fields but the first two describe effects; a rule has at least
// one effect. When several rules apply to one call, their delays add up, and the call has the
// largest lag and lead and the shortest history. The first rule that fails the call decides how it
// fails, and the first rule with an Outcome decides the outcome.
type Rule struct {
	// Method is the method to which the rule applies; "" means every method.
	Method string `json:"method,omitempty"`
	// Probability is the probability that the rule applies to a call, up to 1; 0 means 1.
	Probability float64 `json:"probability,omitempty"`

	// Latency delays the answer. Jitter adds a random delay below Jitter.
	Latency, Jitter time.Duration `json:"-"`
	// AfterActing lets the call take effect before it is delayed or fails.
	AfterActing bool `json:"afterActing,omitempty"`
	// At most one of Status, Error, Cut and Hang is set. Status answers with an HTTP status of 400
	// to 599 and a JSON body. RetryAfter adds the header Retry-After, in whole seconds, rounded up.
	Status     int           `json:"status,omitempty"`
	RetryAfter time.Duration `json:"-"`
	// Error answers with a JSON-RPC error.
	Error Error `json:"error,omitzero"`
	// Cut closes the connection without an answer.
	Cut bool `json:"cut,omitempty"`
	// Hang sends no answer and waits until the client goes away.
	Hang bool `json:"hang,omitempty"`

	// Drop answers sendTransaction with the signature and drops the transaction.
	Drop bool `json:"drop,omitempty"`
	// Empty answers as if nothing existed: balance 0, null for accounts,
	// statuses and transactions, and empty lists.
	Empty bool `json:"empty,omitempty"`
	// Lag answers from the state of Lag slots ago. A lag above 128 makes the node
	// unhealthy, as on Agave.
	Lag uint64 `json:"lag,omitempty"`
	// FrozenBlockhash makes getLatestBlockhash repeat its answer from the time when
	// the rule was set, as a cache in front of a node does. The answer keeps its old
	// context slot, and minContextSlot is not checked.
	FrozenBlockhash bool `json:"frozenBlockhash,omitempty"`
	// Health is a fixed answer of getHealth.
	Health Health `json:"health,omitempty"`
	// History serves only blocks and transactions of the newest History slots; 0 means no limit.
	History uint64 `json:"history,omitempty"`
	// UnknownVersionBytes adds transactions of version 2, which nobody can decode yet, to
	// every block of getBlock, of so many bytes in all.
	UnknownVersionBytes uint64 `json:"unknownVersionBytes,omitempty"`

	// Ahead is the number of slots that the node adds to its true slot: in getSlot,
	// in every context slot and in the check of minContextSlot. With an equal Lag
	// the node presents an old state as the newest.
	Ahead uint64 `json:"ahead,omitempty"`
	// HeightAhead is the number of blocks that the node adds to every block height,
	// the last valid block height of a blockhash included.
	HeightAhead uint64 `json:"heightAhead,omitempty"`
	// SlotAsHeight answers with slots instead of block heights, on mainnet 22 million
	// too many. The last valid block height of a blockhash is then its slot plus 150.
	SlotAsHeight bool `json:"slotAsHeight,omitempty"`
	// Outcome is claimed for every transaction. Err is the transaction error of
	// OutcomeFails in Agave's JSON, such as {"InstructionError":[2,{"Custom":1}]}.
	Outcome Outcome `json:"outcome,omitempty"`
	Err     string  `json:"-"`

	// Socket is a fault of WebSocket connections.
	Socket Socket `json:"socket,omitempty"`
}

// Validate returns an error that names an invalid field and what it should be.
func (r *Rule) Validate() error {
	switch {
	case r.Probability < 0 || r.Probability > 1 || r.Probability != r.Probability:
		return fmt.Errorf("probability is %v, expected more than 0 and up to 1, or none for 1", r.Probability)
	case r.Latency < 0 || r.Jitter < 0 || r.RetryAfter < 0:
		return fmt.Errorf("latency %s, jitter %s and retryAfter %s: expected no negative duration", r.Latency, r.Jitter, r.RetryAfter)
	case r.Status != 0 && (r.Status < http.StatusBadRequest || r.Status > 599):
		return fmt.Errorf("status is %d, expected an HTTP status of 400 to 599", r.Status)
	case r.RetryAfter > 0 && r.Status == 0:
		return errors.New("retryAfter is set without a status, expected a status as well")
	case r.Error.Code == 0 && r.Error.Message != "":
		return errors.New("error.message is set without an error.code, expected a code other than 0")
	case r.failures() > 1:
		return errors.New("more than one of status, error, cut and hang is set, expected one: use a rule for each")
	case r.AfterActing && r.failures() == 0 && r.Latency == 0 && r.Jitter == 0:
		return errors.New("afterActing is set without latency, jitter, status, error, cut or hang that it could defer")
	}
	if err := r.validateMethod(); err != nil {
		return err
	}
	return r.validateAnswer()
}

// validateMethod checks that a fault of only some methods is not set for another method.
func (r *Rule) validateMethod() error {
	switch {
	case r.Drop && r.Method != "" && r.Method != methodSend:
		return fmt.Errorf("drop is for method %s, got %q", methodSend, r.Method)
	case r.FrozenBlockhash && r.Method != "" && r.Method != methodBlockhash:
		return fmt.Errorf("frozenBlockhash is for method %s, got %q", methodBlockhash, r.Method)
	case r.Health != "" && r.Method != "" && r.Method != methodHealth:
		return fmt.Errorf("health is for method %s, got %q", methodHealth, r.Method)
	case r.Outcome != "" && !r.appliesTo(methodStatuses) && !r.appliesTo(methodSimulate) && !r.appliesTo(methodSend):
		return fmt.Errorf("outcome is for method %s, %s or %s, got %q", methodStatuses, methodSimulate, methodSend, r.Method)
	case r.UnknownVersionBytes != 0 && r.Method != methodBlock:
		return fmt.Errorf("unknownVersionBytes is for method %s, got %q", methodBlock, r.Method)
	case r.UnknownVersionBytes > maxUnknownVersionBytes:
		return fmt.Errorf("unknownVersionBytes is %d, expected at most %d", r.UnknownVersionBytes, maxUnknownVersionBytes)
	case r.Socket == SocketCut && r.Method != "":
		return fmt.Errorf("socket %q is for whole connections, expected no method, got %q", SocketCut, r.Method)
	}
	return nil
}

// validateAnswer checks the faults that change the answer, and that there is an effect.
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
		return errors.New("the rule has no effect, expected latency, jitter, status, error, cut, hang, drop, empty, lag, frozenBlockhash, health, history, unknownVersionBytes, ahead, heightAhead, slotAsHeight, outcome or socket")
	}
	return nil
}

func (r *Rule) appliesTo(method string) bool { return r.Method == "" || r.Method == method }

// failures is the number of ways in which the rule fails a call.
func (r *Rule) failures() (n int) {
	for _, set := range []bool{r.Status != 0, r.Error.Code != 0, r.Cut, r.Hang} {
		if set {
			n++
		}
	}
	return n
}

// Validate returns an error that names an invalid rule, counting from 0, and its invalid field.
func Validate(rules []Rule) error {
	for i := range rules {
		if err := rules[i].Validate(); err != nil {
			return fmt.Errorf("fault rule %d: %w", i, err)
		}
	}
	return nil
}
