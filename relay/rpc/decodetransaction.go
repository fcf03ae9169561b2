package rpc

import (
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/gagliardetto/solana-go"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/relaypool/relaypool/relay/onchain"
)

const (
	// knownVersion is the newest transaction version whose bytes the relay decodes (SIMD-0385).
	knownVersion = 1
	// versionBit marks the first byte of a versioned message. A transaction of version 1 or
	// later starts with its message, an older one with the number of its signatures, which is
	// smaller than versionBit.
	versionBit = 0x80
	// legacy stands for a transaction without version.
	legacy = -1
)

// versionOf returns the version of a transaction's bytes; legacy for a transaction without one.
func versionOf(raw []byte) int {
	if len(raw) == 0 {
		return legacy
	}
	if raw[0] < versionBit {
		message := 1 + int(raw[0])*solana.SignatureLength
		if message >= len(raw) || raw[message] < versionBit {
			return legacy
		}
		return int(raw[message] &^ versionBit)
	}
	return int(raw[0] &^ versionBit)
}

// wireTransaction is a transaction in one of two encodings: base64 has its bytes, which the
// relay decodes itself; json has the node's decoding, which exists for every version.
type wireTransaction struct {
	Transaction jsontext.Value `json:"transaction"`
	Meta        *wireMeta      `json:"meta"`
}

type wireMeta struct {
	Fee   *uint64        `json:"fee"`
	Pre   []uint64       `json:"preBalances"`
	Post  []uint64       `json:"postBalances"`
	Err   jsontext.Value `json:"err"`
	Inner []struct {
		Index        int               `json:"index"`
		Instructions []wireInstruction `json:"instructions"`
	} `json:"innerInstructions"`
	Loaded struct {
		Writable []solana.PublicKey `json:"writable"`
		Readonly []solana.PublicKey `json:"readonly"`
	} `json:"loadedAddresses"`
}

type wireInstruction struct {
	Program  int           `json:"programIdIndex"`
	Accounts []int         `json:"accounts"`
	Data     solana.Base58 `json:"data"`
}

// wireMessage is a transaction as a node decodes it.
type wireMessage struct {
	Signatures []solana.Signature `json:"signatures"`
	Message    struct {
		Keys         []solana.PublicKey `json:"accountKeys"`
		Instructions []wireInstruction  `json:"instructions"`
	} `json:"message"`
}

// errUnknownVersion reports bytes of a version that the relay cannot decode.
var errUnknownVersion = errors.New("the relay cannot decode this version: update the relay")

// decodeTransaction decodes a transaction's bytes.
func decodeTransaction(raw []byte) (*wireMessage, error) {
	if v := versionOf(raw); v > knownVersion {
		return nil, fmt.Errorf("transaction version %d: %w", v, errUnknownVersion)
	}
	tx, err := solana.TransactionFromBytes(raw)
	if err != nil {
		return nil, fmt.Errorf("%d bytes are not a transaction", len(raw))
	}
	if tx.Message.GetVersion() == solana.MessageVersionV1 {
		if err := tx.Sanitize(); err != nil {
			return nil, fmt.Errorf("%d bytes are not a valid transaction", len(raw))
		}
	}
	out := &wireMessage{Signatures: tx.Signatures}
	out.Message.Keys = tx.Message.AccountKeys
	for _, ix := range tx.Message.Instructions {
		call := wireInstruction{Program: int(ix.ProgramIDIndex), Accounts: make([]int, len(ix.Accounts)), Data: ix.Data}
		for j, a := range ix.Accounts {
			call.Accounts[j] = int(a)
		}
		out.Message.Instructions = append(out.Message.Instructions, call)
	}
	return out, nil
}

func (w *wireTransaction) message() (*wireMessage, error) {
	var encoded []string
	if json.Unmarshal(w.Transaction, &encoded, lenient) != nil {
		out := new(wireMessage)
		if json.Unmarshal(w.Transaction, out, lenient) != nil {
			return nil, errors.New("transaction is neither bytes nor a message")
		}
		return out, nil
	}
	if len(encoded) != 2 || encoded[1] != "base64" {
		return nil, errors.New("base64 bytes are missing")
	}
	raw, err := base64.StdEncoding.DecodeString(encoded[0])
	if err != nil {
		return nil, errors.New("bytes are not base64")
	}
	return decodeTransaction(raw)
}

// resolvedTransaction is a transaction with its indices replaced by keys.
type resolvedTransaction struct {
	onchain.BlockTransaction
	keys       []solana.PublicKey
	signatures uint64
}

func (w *wireTransaction) resolve() (resolvedTransaction, error) {
	tx, err := w.message()
	switch {
	case err != nil:
		return resolvedTransaction{}, err
	case w.Meta == nil:
		return resolvedTransaction{}, errors.New("meta is missing")
	}
	return tx.resolve(w.Meta)
}

func (tx *wireMessage) resolve(meta *wireMeta) (out resolvedTransaction, err error) {
	if len(tx.Signatures) == 0 || len(tx.Message.Keys) == 0 {
		return out, errors.New("signatures or account keys are missing")
	}
	// The network numbers a transaction's own keys first, then the writable ones
	// from lookup tables, then the read-only ones.
	keys := append(append(append([]solana.PublicKey(nil), tx.Message.Keys...), meta.Loaded.Writable...), meta.Loaded.Readonly...)
	inner := make(map[int][]wireInstruction, len(meta.Inner))
	for _, group := range meta.Inner {
		inner[group.Index] = append(inner[group.Index], group.Instructions...)
	}
	out.keys, out.signatures = keys, uint64(len(tx.Signatures))
	out.Signature, out.FeePayer, out.Failed = tx.Signatures[0], keys[0], len(meta.Err) > 0 && !isNull(meta.Err)
	if meta.Inner == nil && !out.Failed {
		// The list is required: a node that does not record inner instructions would hide the calls
		// that other programs make to the pool. Only a transaction that failed before it was
		// executed has no list.
		return out, errors.New("innerInstructions are missing: expected a list; use an RPC endpoint whose node runs with --enable-extended-tx-metadata-storage")
	}
	for i, outer := range tx.Message.Instructions {
		for _, call := range append([]wireInstruction{outer}, inner[i]...) {
			instruction, err := call.resolve(keys)
			if err != nil {
				return out, fmt.Errorf("instruction %d: %w", i, err)
			}
			out.Instructions = append(out.Instructions, instruction)
		}
	}
	return out, nil
}

// resolve replaces indices by addresses.
func (w *wireInstruction) resolve(keys []solana.PublicKey) (onchain.Instruction, error) {
	ix := onchain.Instruction{Accounts: make([]solana.PublicKey, len(w.Accounts)), Data: w.Data}
	if w.Program < 0 || w.Program >= len(keys) {
		return ix, fmt.Errorf("its program is account %d of %d", w.Program, len(keys))
	}
	ix.ProgramID = keys[w.Program]
	for i, a := range w.Accounts {
		if a < 0 || a >= len(keys) {
			return ix, fmt.Errorf("it names account %d of %d", a, len(keys))
		}
		ix.Accounts[i] = keys[a]
	}
	return ix, nil
}
