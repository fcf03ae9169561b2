package rpc

import (
	"encoding/json"
	"errors"

	"github.com/relaypool/relaypool/relay/onchain"
)

// atSlot is a result with the slot at which it was read. Decoding fails if the slot or the value is
// missing, because a missing value is unknown, not zero.
type atSlot[T any] struct {
	Slot  uint64
	Value T
}

func (a *atSlot[T]) UnmarshalJSON(b []byte) error {
	var raw struct {
		Context struct {
			Slot *uint64 `json:"slot"`
		} `json:"context"`
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	if raw.Context.Slot == nil || raw.Value == nil || isNull(raw.Value) {
		return errors.New("context slot or value is missing")
	}
	a.Slot = *raw.Context.Slot
	return json.Unmarshal(raw.Value, &a.Value)
}

type config map[string]any

func committed(c onchain.Commitment) config { return config{"commitment": c} }

// notBefore makes a node refuse the call if it has not reached the slot; 0 accepts any node.
func (c config) notBefore(slot uint64) config {
	if slot > 0 {
		c["minContextSlot"] = slot
	}
	return c
}
