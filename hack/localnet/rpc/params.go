package rpc

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/gagliardetto/solana-go"
	"github.com/mr-tron/base58"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

// params are the positional parameters of a call; Agave takes no named ones.
type params []json.RawMessage

func parseParams(raw json.RawMessage) (params, *Error) {
	if isNull(raw) {
		return nil, nil
	}
	var p params
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, invalidParams("Invalid params: expected an array of positional parameters")
	}
	return p, nil
}

func isNull(raw json.RawMessage) bool {
	return len(raw) == 0 || bytes.Equal(bytes.TrimSpace(raw), []byte("null"))
}

// want checks the number of parameters.
func (p params) want(least, most int) *Error {
	if len(p) < least {
		return invalidParams("`params` should have at least %d argument(s)", least)
	}
	if len(p) > most {
		return invalidParams("Invalid parameters: Expected from %d to %d parameters. Got: %d", least, most, len(p))
	}
	return nil
}

// decode reads parameter i into to; an absent or null one leaves it as it is.
func (p params) decode(i int, to any) *Error {
	if i >= len(p) || isNull(p[i]) {
		return nil
	}
	if err := json.Unmarshal(p[i], to); err != nil {
		return invalidParams("Invalid params: parameter %d: %v", i+1, plain(err))
	}
	return nil
}

// plain describes a JSON fault without the value that caused it.
func plain(err error) string {
	if fault, ok := err.(*json.UnmarshalTypeError); ok { //nolint:errorlint // json.Unmarshal returns it unwrapped
		return fmt.Sprintf("invalid type: %s, expected %s", fault.Value, fault.Type)
	}
	return err.Error()
}

// key reads the first parameter as 32 bytes in base58, which an address is.
func (p params) key() (solana.PublicKey, *Error) {
	var text string
	if err := p.decode(0, &text); err != nil {
		return solana.PublicKey{}, err
	}
	return parseKey(text)
}

func parseKey(text string) (solana.PublicKey, *Error) {
	raw, err := decode58(text, solana.PublicKeyLength)
	if err != nil {
		return solana.PublicKey{}, err
	}
	return solana.PublicKeyFromBytes(raw), nil
}

func parseKeys(texts []string) ([]solana.PublicKey, *Error) {
	keys := make([]solana.PublicKey, len(texts))
	for i, text := range texts {
		key, err := parseKey(text)
		if err != nil {
			return nil, err
		}
		keys[i] = key
	}
	return keys, nil
}

func parseSignature(text string) (solana.Signature, *Error) {
	raw, err := decode58(text, solana.SignatureLength)
	if err != nil {
		return solana.Signature{}, err
	}
	return solana.SignatureFromBytes(raw), nil
}

func decode58(text string, size int) ([]byte, *Error) {
	raw, err := base58.Decode(text)
	if err != nil {
		return nil, invalidParams("Invalid param: Invalid")
	}
	if len(raw) != size {
		return nil, invalidParams("Invalid param: WrongSize")
	}
	return raw, nil
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

// contextConfig is the part that most methods' configurations share.
type contextConfig struct {
	Commitment     level   `json:"commitment"`
	MinContextSlot *uint64 `json:"minContextSlot"`
}

// settled refuses processed, which methods that read history do not serve.
func (c contextConfig) settled() *Error {
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

type answerContext struct {
	APIVersion string `json:"apiVersion"`
	Slot       uint64 `json:"slot"`
}

func answerAt(slot uint64, value any) answer {
	return answer{Context: answerContext{APIVersion: version, Slot: slot}, Value: value}
}
