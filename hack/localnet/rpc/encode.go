package rpc

import (
	"encoding/base64"

	"github.com/gagliardetto/solana-go"
	"github.com/mr-tron/base58"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

// encodeLanded gives a transaction with its meta data and, when the client
// names the versions that it supports, its version.
func encodeLanded(l *bank.Landed, cfg historyConfig) (map[string]any, *Error) {
	out := map[string]any{"transaction": encodeTransaction(l.Transaction, cfg.Encoding), "meta": encodeMeta(l)}
	return out, addVersion(out, l, cfg)
}

// encodeLandedAccounts gives what transactionDetails accounts asks for: the
// accounts with their balances, without the instructions.
func encodeLandedAccounts(l *bank.Landed, cfg historyConfig) (map[string]any, *Error) {
	keys := make([]any, len(l.Keys))
	for i, key := range l.Keys {
		keys[i] = map[string]any{
			"pubkey": key.String(), "signer": i < len(l.Signatures), "writable": l.Writable[i],
			"source": sourceOf(l.Message, i),
		}
	}
	out := map[string]any{
		"transaction": map[string]any{"accountKeys": keys, "signatures": signatureTexts(l.Signatures)},
		"meta": map[string]any{
			"err": l.Meta.Err, "status": deprecatedStatus(l.Meta.Err), "fee": l.Meta.Fee,
			"preBalances": l.Meta.PreBalances, "postBalances": l.Meta.PostBalances,
			"preTokenBalances":  encodeTokenBalances(l.Meta.PreTokens),
			"postTokenBalances": encodeTokenBalances(l.Meta.PostTokens),
		},
	}
	return out, addVersion(out, l, cfg)
}

// sourceOf tells where a message has its account at index i from.
func sourceOf(m *bank.Message, i int) string {
	if i < len(m.AccountKeys) {
		return "transaction"
	}
	return "lookupTable"
}

func addVersion(out map[string]any, l *bank.Landed, cfg historyConfig) *Error {
	v0 := l.GetVersion() == solana.MessageVersionV0
	switch {
	case cfg.MaxSupportedTransactionVersion == nil && v0:
		return errUnsupportedVersion(0)
	case cfg.MaxSupportedTransactionVersion == nil:
	case v0:
		out["version"] = 0
	default:
		out["version"] = "legacy"
	}
	return nil
}

func signatureTexts(signatures []solana.Signature) []string {
	out := make([]string, len(signatures))
	for i, signature := range signatures {
		out[i] = signature.String()
	}
	return out
}

func encodeTransaction(tx *bank.Transaction, as encoding) any {
	switch as {
	case encodingBase64:
		return [2]string{base64.StdEncoding.EncodeToString(tx.Raw), string(as)}
	case encodingBase58:
		return [2]string{base58.Encode(tx.Raw), string(as)}
	default:
		return map[string]any{"signatures": signatureTexts(tx.Signatures), "message": encodeMessage(tx.Message)}
	}
}

func encodeMessage(m *bank.Message) map[string]any {
	instructions := make([]any, len(m.Instructions))
	for i, ix := range m.Instructions {
		instructions[i] = encodeInstruction(ix.ProgramIDIndex, ix.Accounts, ix.Data, nil)
	}
	out := map[string]any{
		"header": m.Header, "accountKeys": keyTexts(m.AccountKeys),
		"recentBlockhash": m.RecentBlockhash.String(), "instructions": instructions,
	}
	if m.GetVersion() == solana.MessageVersionV0 {
		lookups := make([]any, len(m.AddressTableLookups))
		for i, lookup := range m.AddressTableLookups {
			lookups[i] = lookup
		}
		out["addressTableLookups"] = lookups
	}
	return out
}

func keyTexts(keys []solana.PublicKey) []string {
	out := make([]string, len(keys))
	for i, key := range keys {
		out[i] = key.String()
	}
	return out
}

// encodeReturnData gives null for none.
func encodeReturnData(data *bank.ReturnData) any {
	if data == nil {
		return nil
	}
	return map[string]any{
		"programId": data.Program.String(),
		"data":      [2]string{base64.StdEncoding.EncodeToString(data.Data), string(encodingBase64)},
	}
}

func encodeInstruction(program uint16, accounts []uint16, data []byte, stackHeight any) map[string]any {
	if accounts == nil {
		accounts = []uint16{}
	}
	return map[string]any{
		"programIdIndex": program, "accounts": accounts, "data": base58.Encode(data), "stackHeight": stackHeight,
	}
}

func encodeInner(inner []bank.InnerInstruction) []any {
	out := make([]any, len(inner))
	for i, in := range inner {
		instructions := make([]any, len(in.Instructions))
		for j, ix := range in.Instructions {
			instructions[j] = encodeInstruction(ix.ProgramIDIndex, ix.Accounts, ix.Data, ix.StackHeight)
		}
		out[i] = map[string]any{"index": in.Index, "instructions": instructions}
	}
	return out
}

func encodeMeta(l *bank.Landed) map[string]any {
	m := &l.Meta
	out := map[string]any{
		"err":                  m.Err,
		"status":               deprecatedStatus(m.Err),
		"fee":                  m.Fee,
		"preBalances":          m.PreBalances,
		"postBalances":         m.PostBalances,
		"innerInstructions":    encodeInner(m.Inner),
		"logMessages":          m.Logs,
		"preTokenBalances":     encodeTokenBalances(m.PreTokens),
		"postTokenBalances":    encodeTokenBalances(m.PostTokens),
		"rewards":              []any{},
		"computeUnitsConsumed": m.Units,
		"loadedAddresses": map[string]any{
			"writable": keyTexts(l.Loaded.Writable), "readonly": keyTexts(l.Loaded.Readonly),
		},
	}
	if m.ReturnData != nil {
		out["returnData"] = encodeReturnData(m.ReturnData)
	}
	return out
}
