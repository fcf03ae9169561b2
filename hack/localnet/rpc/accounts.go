package rpc

import (
	"encoding/base64"
	"math"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

const maxAccounts = 100

type accountConfig struct {
	contextConfig
	Encoding  base64Only `json:"encoding"`
	DataSlice *dataSlice `json:"dataSlice"`
}

type dataSlice struct {
	Offset uint64 `json:"offset"`
	Length uint64 `json:"length"`
}

// apply returns the part of data that the slice selects, as far as data reaches. A nil
// slice selects all data.
func (s *dataSlice) apply(data []byte) []byte {
	if s == nil {
		return data
	}
	data = data[min(s.Offset, uint64(len(data))):]
	return data[:min(s.Length, uint64(len(data)))]
}

type account struct {
	Data       [2]string        `json:"data"`
	Executable bool             `json:"executable"`
	Lamports   uint64           `json:"lamports"`
	Owner      solana.PublicKey `json:"owner"`
	RentEpoch  uint64           `json:"rentEpoch"`
	Space      int              `json:"space"`
}

// inBase64 is data in base64 with the encoding's name. The library's type would
// encode a tree of megabytes twice.
func inBase64(data []byte) [2]string {
	return [2]string{base64.StdEncoding.EncodeToString(data), "base64"}
}

// encodeAccount returns the account's JSON form, or nil for a missing account.
func encodeAccount(a *bank.Account, slice *dataSlice) *account {
	if a == nil {
		return nil
	}
	return &account{
		Data:       inBase64(slice.apply(a.Data)),
		Executable: a.Executable, Lamports: a.Lamports, Owner: a.Owner, RentEpoch: math.MaxUint64, Space: len(a.Data),
	}
}

func (c *call) getBalance(p params) (any, error) {
	var key solana.PublicKey
	var cfg contextConfig
	if err := p.read(1, &key, &cfg); err != nil {
		return nil, err
	}
	return c.read(cfg, func(v view) (any, error) {
		var lamports uint64
		if a := v.Account(key); a != nil {
			lamports = a.Lamports
		}
		return answerAt(v.Slot(), lamports), nil
	})
}

func (c *call) getAccountInfo(p params) (any, error) {
	var key solana.PublicKey
	var cfg accountConfig
	if err := p.read(1, &key, &cfg); err != nil {
		return nil, err
	}
	return c.read(cfg.contextConfig, func(v view) (any, error) {
		return answerAt(v.Slot(), encodeAccount(v.Account(key), cfg.DataSlice)), nil
	})
}

func (c *call) getMultipleAccounts(p params) (any, error) {
	var keys []solana.PublicKey
	var cfg accountConfig
	if err := p.read(1, &keys, &cfg); err != nil {
		return nil, err
	}
	if err := atMost(maxAccounts, len(keys)); err != nil {
		return nil, err
	}
	return c.read(cfg.contextConfig, func(v view) (any, error) {
		values := make([]*account, len(keys))
		for i, key := range keys {
			values[i] = encodeAccount(v.Account(key), cfg.DataSlice)
		}
		return answerAt(v.Slot(), values), nil
	})
}
