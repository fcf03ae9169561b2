package rpc

import (
	"encoding/base64"
	"math"

	"github.com/mr-tron/base58"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

const (
	maxAccounts = 100
	// maxBase58Data is the largest data that base58, slow as it is, may encode.
	maxBase58Data = 128
)

// encoding is how account data or a transaction is written.
type encoding string

const (
	// encodingBinary is base58 as a bare string: what old clients expect, and
	// still the default of getAccountInfo.
	encodingBinary     encoding = "binary"
	encodingBase58     encoding = "base58"
	encodingBase64     encoding = "base64"
	encodingJSON       encoding = "json"
	encodingJSONParsed encoding = "jsonParsed"
)

type accountConfig struct {
	contextConfig
	Encoding  encoding   `json:"encoding"`
	DataSlice *dataSlice `json:"dataSlice"`
}

type dataSlice struct {
	Offset uint64 `json:"offset"`
	Length uint64 `json:"length"`
}

// of cuts the slice out of data, as far as there is any.
func (s *dataSlice) of(data []byte) []byte {
	if s == nil {
		return data
	}
	data = data[min(s.Offset, uint64(len(data))):]
	return data[:min(s.Length, uint64(len(data)))]
}

type account struct {
	Data       any    `json:"data"`
	Executable bool   `json:"executable"`
	Lamports   uint64 `json:"lamports"`
	Owner      string `json:"owner"`
	RentEpoch  uint64 `json:"rentEpoch"`
	Space      int    `json:"space"`
}

// encodeAccount gives the account's form on the wire; a missing one is null.
// The mint of a token account is looked for among the accounts at its side.
func encodeAccount(a *bank.Account, as encoding, slice *dataSlice, accounts accountsAt) (any, *Error) {
	if a == nil {
		return nil, nil
	}
	var data any
	if as == encodingJSONParsed {
		data = parseTokens(a, accounts)
	}
	if data == nil {
		var err *Error
		if data, err = encodeData(slice.of(a.Data), as); err != nil {
			return nil, err
		}
	}
	return account{
		Data: data, Executable: a.Executable, Lamports: a.Lamports,
		Owner: a.Owner.String(), RentEpoch: math.MaxUint64, Space: len(a.Data),
	}, nil
}

func encodeData(data []byte, as encoding) (any, *Error) {
	switch as {
	case encodingBinary, encodingBase58:
		if len(data) > maxBase58Data {
			return nil, &Error{Code: codeInvalidRequest, Message: "Encoded binary (base 58) data should be less than 128 bytes, please use Base64 encoding."}
		}
		if as == encodingBinary {
			return base58.Encode(data), nil
		}
		return [2]string{base58.Encode(data), string(encodingBase58)}, nil
	case encodingBase64, encodingJSONParsed:
		// What no parser knows is base64, as on Agave.
		return [2]string{base64.StdEncoding.EncodeToString(data), string(encodingBase64)}, nil
	default:
		return nil, invalidParams("Invalid params: unknown variant `%s`, expected one of `binary`, `base64`, `base58`, `jsonParsed`", as)
	}
}

func (c *call) getBalance(p params) (any, *Error) {
	if err := p.want(1, 2); err != nil {
		return nil, err
	}
	key, err := p.key()
	if err != nil {
		return nil, err
	}
	return c.onView(p, 1, func(v view) any {
		var lamports uint64
		if a := v.Account(key); a != nil {
			lamports = a.Lamports
		}
		return answerAt(v.Slot(), lamports)
	})
}

func (c *call) getAccountInfo(p params) (any, *Error) {
	if err := p.want(1, 2); err != nil {
		return nil, err
	}
	key, err := p.key()
	if err != nil {
		return nil, err
	}
	cfg := accountConfig{Encoding: encodingBinary}
	if err := p.decode(1, &cfg); err != nil {
		return nil, err
	}
	var value any
	var slot uint64
	var encodeErr *Error
	err = c.read(cfg.contextConfig, func(v view) {
		slot = v.Slot()
		value, encodeErr = encodeAccount(v.Account(key), cfg.Encoding, cfg.DataSlice, v.Account)
	})
	if err == nil {
		err = encodeErr
	}
	return answerAt(slot, value), err
}

func (c *call) getMultipleAccounts(p params) (any, *Error) {
	if err := p.want(1, 2); err != nil {
		return nil, err
	}
	var texts []string
	if err := p.decode(0, &texts); err != nil {
		return nil, err
	}
	if len(texts) > maxAccounts {
		return nil, invalidParams("Too many inputs provided; max %d", maxAccounts)
	}
	keys, err := parseKeys(texts)
	if err != nil {
		return nil, err
	}
	cfg := accountConfig{Encoding: encodingBase64}
	if err := p.decode(1, &cfg); err != nil {
		return nil, err
	}
	values := make([]any, len(keys))
	var slot uint64
	var encodeErr *Error
	err = c.read(cfg.contextConfig, func(v view) {
		slot = v.Slot()
		for i, key := range keys {
			if values[i], encodeErr = encodeAccount(v.Account(key), cfg.Encoding, cfg.DataSlice, v.Account); encodeErr != nil {
				return
			}
		}
	})
	if err == nil {
		err = encodeErr
	}
	return answerAt(slot, values), err
}
