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

// duration is a time.Duration that JSON writes as a string such as "250ms".
type duration time.Duration

// MarshalText writes a duration as Go does.
func (d duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads a duration as Go writes it.
func (d *duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf(`got %q, expected a duration as a string, such as "250ms" or "2s"`, text)
	}
	*d = duration(parsed)
	return nil
}

// fields is a Rule without its methods.
type fields Rule

type wireRule struct {
	*fields
	Latency    duration        `json:"latency,omitzero"`
	Jitter     duration        `json:"jitter,omitzero"`
	RetryAfter duration        `json:"retryAfter,omitzero"`
	Err        json.RawMessage `json:"err,omitempty"`
}

// MarshalJSON writes the fields of the rule that are set.
func (r Rule) MarshalJSON() ([]byte, error) {
	return json.Marshal(wireRule{(*fields)(&r), duration(r.Latency), duration(r.Jitter), duration(r.RetryAfter), json.RawMessage(r.Err)})
}

// UnmarshalJSON reads a rule and refuses unknown fields. It does not validate the values.
func (r *Rule) UnmarshalJSON(raw []byte) error {
	w := wireRule{fields: &fields{}}
	if err := DecodeStrictly(raw, &w); err != nil {
		return err
	}
	*r = Rule(*w.fields)
	r.Latency, r.Jitter, r.RetryAfter, r.Err = time.Duration(w.Latency), time.Duration(w.Jitter), time.Duration(w.RetryAfter), string(w.Err)
	return nil
}

// ParseRules reads and validates a JSON array of rules. Errors name the rule,
// counting from 0, and the field.
func ParseRules(raw []byte) ([]Rule, error) {
	var members []json.RawMessage
	if err := DecodeStrictly(raw, &members); err != nil {
		return nil, fmt.Errorf("fault rules: expected a JSON array of rules: %w", err)
	}
	rules := make([]Rule, len(members))
	for i, member := range members {
		if err := rules[i].UnmarshalJSON(member); err != nil {
			return nil, fmt.Errorf("fault rule %d: %w", i, err)
		}
	}
	return rules, Validate(rules)
}

// DecodeStrictly reads one JSON value into the target to. It returns an error for
// fields that the target does not have, and for bytes after the value.
func DecodeStrictly(raw []byte, to any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	var wrongType *json.UnmarshalTypeError
	switch err := decoder.Decode(to); {
	case errors.As(err, &wrongType):
		field := strings.TrimPrefix(wrongType.Field, "fields.") // without the name of the embedded struct
		return fmt.Errorf("%s: got a %s, expected %s", field, wrongType.Value, wrongType.Type)
	case err != nil:
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("expected one JSON value, got more after it")
	}
	return nil
}
