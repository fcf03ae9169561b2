package fault

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// wireRule is a Rule's JSON form: durations are texts such as "250ms".
type wireRule struct {
	Method          string          `json:"method,omitempty"`
	Probability     float64         `json:"probability,omitempty"`
	Latency         *wireDuration   `json:"latency,omitempty"`
	Jitter          *wireDuration   `json:"jitter,omitempty"`
	AfterActing     bool            `json:"afterActing,omitempty"`
	Status          int             `json:"status,omitempty"`
	RetryAfter      *wireDuration   `json:"retryAfter,omitempty"`
	Error           *Error          `json:"error,omitempty"`
	Cut             bool            `json:"cut,omitempty"`
	Hang            bool            `json:"hang,omitempty"`
	Drop            bool            `json:"drop,omitempty"`
	Empty           bool            `json:"empty,omitempty"`
	Lag             uint64          `json:"lag,omitempty"`
	FrozenBlockhash bool            `json:"frozenBlockhash,omitempty"`
	Health          Health          `json:"health,omitempty"`
	History         uint64          `json:"history,omitempty"`
	Ahead           uint64          `json:"ahead,omitempty"`
	HeightAhead     uint64          `json:"heightAhead,omitempty"`
	SlotAsHeight    bool            `json:"slotAsHeight,omitempty"`
	Outcome         Outcome         `json:"outcome,omitempty"`
	Err             json.RawMessage `json:"err,omitempty"`
	Socket          Socket          `json:"socket,omitempty"`
}

// fields is what a rule may have in JSON, for errors.
const fields = "method, probability, latency, jitter, afterActing, status, retryAfter, error, cut, hang, drop, empty, lag, frozenBlockhash, health, history, ahead, heightAhead, slotAsHeight, outcome, err or socket"

type wireDuration time.Duration

// errDuration is told by UnmarshalJSON, which does not know its field's name.
var errDuration = errors.New(`expected a duration as a string, such as "250ms" or "2s"`)

// UnmarshalJSON reads a duration as Go writes it.
func (d *wireDuration) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return fmt.Errorf("got %s, %w", bytes.TrimSpace(raw), errDuration)
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("got %q, %w", text, errDuration)
	}
	*d = wireDuration(parsed)
	return nil
}

// MarshalJSON writes a duration as Go does.
func (d wireDuration) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(d).String())
}

func toWire(d time.Duration) *wireDuration {
	if d == 0 {
		return nil
	}
	w := wireDuration(d)
	return &w
}

func (d *wireDuration) duration() time.Duration {
	if d == nil {
		return 0
	}
	return time.Duration(*d)
}

// MarshalJSON writes the rule with its effects alone.
func (r Rule) MarshalJSON() ([]byte, error) {
	w := wireRule{
		Method: r.Method, Probability: r.Probability,
		Latency: toWire(r.Latency), Jitter: toWire(r.Jitter), AfterActing: r.AfterActing,
		Status: r.Status, RetryAfter: toWire(r.RetryAfter), Cut: r.Cut, Hang: r.Hang,
		Drop: r.Drop, Empty: r.Empty, Lag: r.Lag, FrozenBlockhash: r.FrozenBlockhash,
		Health: r.Health, History: r.History, Socket: r.Socket,
		Ahead: r.Ahead, HeightAhead: r.HeightAhead, SlotAsHeight: r.SlotAsHeight, Outcome: r.Outcome, Err: json.RawMessage(r.Err),
	}
	if r.Error != (Error{}) {
		w.Error = &r.Error
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads a rule and refuses fields that it does not have; it does
// not validate what they hold.
func (r *Rule) UnmarshalJSON(raw []byte) error {
	// Field by field, so that an error can name the one that it is about.
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return errors.New("expected an object for each rule")
	}
	var w wireRule
	for name, value := range members {
		one, err := json.Marshal(map[string]json.RawMessage{name: value})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		decoder := json.NewDecoder(bytes.NewReader(one))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&w); err != nil {
			return describe(name, err)
		}
	}
	*r = Rule{
		Method: w.Method, Probability: w.Probability,
		Latency: w.Latency.duration(), Jitter: w.Jitter.duration(), AfterActing: w.AfterActing,
		Status: w.Status, RetryAfter: w.RetryAfter.duration(), Cut: w.Cut, Hang: w.Hang,
		Drop: w.Drop, Empty: w.Empty, Lag: w.Lag, FrozenBlockhash: w.FrozenBlockhash,
		Health: w.Health, History: w.History, Socket: w.Socket,
		Ahead: w.Ahead, HeightAhead: w.HeightAhead, SlotAsHeight: w.SlotAsHeight, Outcome: w.Outcome, Err: string(w.Err),
	}
	if w.Error != nil {
		r.Error = *w.Error
	}
	return nil
}

// describe says what is wrong with a member of a rule.
func describe(name string, err error) error {
	var wrongType *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrongType):
		return fmt.Errorf("%s: got a %s, expected %s", wrongType.Field, wrongType.Value, wrongType.Type)
	case errors.Is(err, errDuration):
		return fmt.Errorf("%s: %w", name, err)
	case strings.Contains(err.Error(), "unknown field") && name == "error":
		return errors.New("error: no such field in it, expected code and message")
	case strings.Contains(err.Error(), "unknown field"):
		return fmt.Errorf("%s: no such field, expected %s", name, fields)
	default:
		return fmt.Errorf("%s: %w", name, err)
	}
}

// ParseRules reads and validates a JSON array of rules. Errors name the rule,
// counting from 0, and the field.
func ParseRules(raw []byte) ([]Rule, error) {
	var members []json.RawMessage
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if err := decoder.Decode(&members); err != nil {
		return nil, fmt.Errorf("fault rules: expected a JSON array of rules: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("fault rules: expected one JSON array, got more after it")
	}
	rules := make([]Rule, len(members))
	for i, member := range members {
		if err := rules[i].UnmarshalJSON(member); err != nil {
			return nil, fmt.Errorf("fault rule %d: %w", i, err)
		}
	}
	return rules, Validate(rules)
}
