package rpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

// params are the positional parameters of a call; Agave takes no named ones.
type params []json.RawMessage

// read decodes the parameters; the first least are required. An absent or null
// one leaves its target unchanged.
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

// plain describes a JSON fault without the value that caused it.
func plain(err error) string {
	var fault *json.UnmarshalTypeError
	if errors.As(err, &fault) {
		return fmt.Sprintf("invalid type: %s, expected %s", fault.Value, fault.Type)
	}
	return err.Error()
}

// atMost refuses a list that is too long.
func atMost(most, got int) error {
	if got > most {
		return invalidParams("Too many inputs provided; max %d", most)
	}
	return nil
}

// level is a commitment on the wire; finalized when it is absent.
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

// base64Only is the encoding of accounts and transactions: no other is served,
// and it is the default of every method, which on Agave base58 often is.
type base64Only struct{}

// UnmarshalText refuses any other.
func (base64Only) UnmarshalText(text []byte) error {
	if string(text) != "base64" {
		return fmt.Errorf("unknown variant `%s`, expected `base64`", text)
	}
	return nil
}

// contextConfig is the part that most methods' configurations share.
type contextConfig struct {
	Commitment     level   `json:"commitment"`
	MinContextSlot *uint64 `json:"minContextSlot"`
}

// settled refuses processed, which methods that read history do not serve.
func (c contextConfig) settled() error {
	if bank.Commitment(c.Commitment) == bank.Processed {
		return invalidParams("Method does not support commitment below `confirmed`")
	}
	return nil
}

// answer is a result with the slot that it was read at.
type answer struct {
	Context answerContext `json:"context"`
	Value   any           `json:"value"`
}

// answerContext has no version in a notification.
type answerContext struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Slot       uint64 `json:"slot"`
}

func answerAt(slot uint64, value any) answer {
	return answer{Context: answerContext{APIVersion: version, Slot: slot}, Value: value}
}
