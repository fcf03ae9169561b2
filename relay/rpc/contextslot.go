package rpc

import (
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/relaypool/relaypool/relay/onchain"
)

// atSlot is a result with the slot at which it was read. Decoding fails if the slot or the value is
// missing, because a missing value is unknown, not zero.
type atSlot[T any] struct {
	Slot  uint64
	Value T
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (a *atSlot[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	var members struct {
		Context struct {
			Slot *uint64 `json:"slot"`
		} `json:"context"`
		Value *T `json:"value"`
	}
	if err := json.UnmarshalDecode(d, &members); err != nil {
		return err
	}
	if members.Context.Slot == nil || members.Value == nil {
		return errors.New("context slot or value is missing")
	}
	a.Slot, a.Value = *members.Context.Slot, *members.Value
	return nil
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
