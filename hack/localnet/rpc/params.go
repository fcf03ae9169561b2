package rpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

// params are the positional parameters of a call. Agave has no named parameters.
type params []json.RawMessage

// read decodes the parameters into targets. required is the number of required
// parameters. An optional parameter that is absent or null leaves its target unchanged.
func (p params) read(required int, targets ...any) error {
	switch {
	case len(p) < required:
		return invalidParams("`params` should have at least %d argument(s)", required)
	case len(p) > len(targets):
		return invalidParams("Invalid parameters: Expected from %d to %d parameters. Got: %d", required, len(targets), len(p))
	}
	for i, raw := range p {
		if i >= required && bytes.Equal(raw, []byte("null")) {
			continue
		}
		if err := json.Unmarshal(raw, targets[i]); err != nil { //nolint:gosec // G602: len(p) is at most len(targets)
			return invalidParams("Invalid params: parameter %d: %v", i+1, describeJSONError(err))
		}
	}
	return nil
}

// describeJSONError describes a JSON error without the value that caused it.
func describeJSONError(err error) string {
	var fault *json.UnmarshalTypeError
	if errors.As(err, &fault) {
		return fmt.Sprintf("invalid type: %s, expected %s", fault.Value, fault.Type)
	}
	return err.Error()
}

func atMost(limit, got int) error {
	if got > limit {
		return invalidParams("Too many inputs provided; max %d", limit)
	}
	return nil
}

// level is a commitment level in JSON. An absent level is finalized.
type level bank.Commitment

// UnmarshalText reads a level by its name.
func (l *level) UnmarshalText(text []byte) error {
	for _, c := range []bank.Commitment{bank.Finalized, bank.Confirmed, bank.Processed} {
		if c.String() == string(text) {
			*l = level(c)
			return nil
		}
	}
	return fmt.Errorf("unknown variant `%s`, expected one of `processed`, `confirmed`, `finalized`", text)
}

// base64Only is the encoding of accounts and transactions. This chain has no other
// encoding. Agave's default is often base58.
type base64Only struct{}

// UnmarshalText returns an error for any other encoding.
func (base64Only) UnmarshalText(text []byte) error {
	if string(text) != "base64" {
		return fmt.Errorf("unknown variant `%s`, expected `base64`", text)
	}
	return nil
}

// contextConfig is the part that the configurations of most methods share.
type contextConfig struct {
	Commitment     level   `json:"commitment"`
	MinContextSlot *uint64 `json:"minContextSlot"`
}

// checkCommitment returns an error for processed, which methods that read history do not support.
func (c contextConfig) checkCommitment() error {
	if bank.Commitment(c.Commitment) == bank.Processed {
		return invalidParams("Method does not support commitment below `confirmed`")
	}
	return nil
}

// answer is a result with the slot of the state from which it was read.
type answer struct {
	Context answerContext `json:"context"`
	Value   any           `json:"value"`
}

// answerContext is the context of an answer. In a notification it has no version.
type answerContext struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Slot       uint64 `json:"slot"`
}

func answerAt(slot uint64, value any) answer {
	return answer{Context: answerContext{APIVersion: version, Slot: slot}, Value: value}
}
