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

// read decodes the parameters into the targets to. The first least parameters are
// required. An optional parameter that is absent or null leaves its target unchanged.
func (p params) read(least int, to ...any) error {
	switch {
	case len(p) < least:
		return invalidParams("`params` should have at least %d argument(s)", least)
	case len(p) > len(to):
		return invalidParams("Invalid parameters: Expected from %d to %d parameters. Got: %d", least, len(to), len(p))
	}
	for i, raw := range p {
		if i >= least && bytes.Equal(raw, []byte("null")) {
			continue
		}
		if err := json.Unmarshal(raw, to[i]); err != nil { //nolint:gosec // G602: there are as many places
			return invalidParams("Invalid params: parameter %d: %v", i+1, plain(err))
		}
	}
	return nil
}

// plain describes a JSON error without the value that caused it.
func plain(err error) string {
	var fault *json.UnmarshalTypeError
	if errors.As(err, &fault) {
		return fmt.Sprintf("invalid type: %s, expected %s", fault.Value, fault.Type)
	}
	return err.Error()
}

func atMost(most, got int) error {
	if got > most {
		return invalidParams("Too many inputs provided; max %d", most)
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

// base64Only is the encoding of accounts and transactions. This chain serves no
// other, and base64 is the default of every method. Agave's default is often base58.
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

// settled returns an error for processed, which methods that read history do not
// support.
func (c contextConfig) settled() error {
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
