package bank

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	bin "github.com/gagliardetto/binary"
	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
)

// These are the largest sizes in bytes of a transaction: of one without a version or of
// version 0, which has to fit in one network packet, and of version 1 (SIMD-0296).
const (
	MaxTransactionSize   = 1232
	MaxTransactionSizeV1 = 4096
)

const (
	signatureSize = 64
	// firstByteV1 begins a transaction of version 1.
	firstByteV1 = 0x81
)

// MaxSize is the largest size in bytes of a transaction that begins with these bytes.
func MaxSize(raw []byte) int {
	if len(raw) > 0 && raw[0] == firstByteV1 {
		return MaxTransactionSizeV1
	}
	return MaxTransactionSize
}

// WithoutSignatures makes a transaction of a serialized message, with signatures of zeros.
func WithoutSignatures(message []byte) []byte {
	switch {
	case len(message) > 1 && message[0] == firstByteV1:
		return append(slices.Clone(message), make([]byte, signatureSize*int(message[1]))...)
	case len(message) > 1 && message[0]&0x80 != 0: // a version
		return unsigned(message[1], message)
	case len(message) > 0:
		return unsigned(message[0], message)
	default:
		return nil
	}
}

func unsigned(signatures byte, message []byte) []byte {
	return slices.Concat([]byte{signatures & 0x7f}, make([]byte, signatureSize*int(signatures&0x7f)), message)
}

// Message is a decoded and sanitized transaction message.
type Message struct {
	solana.Message
	// Bytes is the serialized message, which is signed.
	Bytes []byte
	// Keys are the accounts in the order in which instructions index them. A
	// resolved message also has the keys from its lookup tables, at the end.
	Keys []solana.PublicKey
	// Writable says for each of Keys whether the transaction may change it.
	Writable []bool
	// Loaded are the keys from lookup tables, empty until the message is resolved.
	Loaded rpc.LoadedAddresses
}

// Transaction is a decoded and sanitized transaction. Its signatures are not
// verified by decoding: see VerifySignatures.
type Transaction struct {
	*Message
	Raw        []byte
	Signatures []solana.Signature
	// hash is the message's SHA-256. The bank refuses a message whose hash has
	// landed, even under another valid signature.
	hash [sha256.Size]byte
}

// Signature returns the first signature, which is the transaction's id.
func (t *Transaction) Signature() solana.Signature { return t.Signatures[0] }

// DecodeTransaction decodes a serialized transaction, legacy, v0 or v1, and checks
// its offsets. The error is a *TransactionError for a transaction that breaks a
// rule, and another error for bytes that are not a transaction.
func DecodeTransaction(raw []byte) (*Transaction, error) {
	if most := MaxSize(raw); len(raw) > most {
		return nil, fmt.Errorf("transaction too large: %d bytes (max: %d bytes)", len(raw), most)
	}
	var tx solana.Transaction
	if err := tx.UnmarshalWithDecoder(bin.NewBinDecoder(raw)); err != nil {
		return nil, fmt.Errorf("decode transaction: %w", err)
	}
	// The library accepts unknown versions, padded lengths and bytes after the
	// end. Only the canonical encoding is accepted here: otherwise one transaction
	// could be sent in many encodings.
	if len(tx.Signatures) < int(tx.Message.Header.NumRequiredSignatures) {
		return nil, newError(SanitizeFailure)
	}
	encoded, err := tx.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("decode transaction: %w", err)
	}
	if !bytes.Equal(encoded, raw) {
		return nil, errors.New("decode transaction: unsupported version, or not its canonical encoding")
	}
	if len(tx.Signatures) != int(tx.Message.Header.NumRequiredSignatures) {
		return nil, newError(SanitizeFailure)
	}
	body := raw[:len(raw)-signatureSize*len(tx.Signatures)] // version 1 ends with the signatures
	if tx.Message.GetVersion() != solana.MessageVersionV1 {
		body = raw[1+signatureSize*len(tx.Signatures):]
	} else if tx.Sanitize() != nil {
		return nil, newError(SanitizeFailure)
	}
	message, err := sanitize(&tx.Message, body)
	if err != nil {
		return nil, err
	}
	return &Transaction{Message: message, Raw: raw, Signatures: tx.Signatures, hash: sha256.Sum256(body)}, nil
}

// sanitize makes Agave's first checks of header and indices, so that no later
// code indexes out of range. It refuses a program from a lookup table.
func sanitize(m *solana.Message, raw []byte) (*Message, error) {
	keys, h := len(m.AccountKeys), m.Header
	if int(h.NumRequiredSignatures)+int(h.NumReadonlyUnsignedAccounts) > keys ||
		h.NumReadonlySignedAccounts >= h.NumRequiredSignatures {
		return nil, newError(SanitizeFailure)
	}
	loaded, err := sanitizeLookups(m)
	if err != nil {
		return nil, err
	}
	for _, ix := range m.Instructions {
		if ix.ProgramIDIndex == 0 || int(ix.ProgramIDIndex) >= keys {
			return nil, newError(SanitizeFailure)
		}
		for _, i := range ix.Accounts {
			if int(i) >= keys+loaded {
				return nil, newError(SanitizeFailure)
			}
		}
	}
	return &Message{Message: *m, Bytes: raw, Keys: m.AccountKeys, Writable: writable(m), Loaded: nothingLoaded()}, nil
}

// writable says for each account whether the header marks it writable. Two kinds
// of account are never writable: reserved ones, and programs that the transaction
// invokes.
func writable(m *solana.Message) []bool {
	signed, h := int(m.Header.NumRequiredSignatures), m.Header
	out := make([]bool, len(m.AccountKeys))
	for i, key := range m.AccountKeys {
		if i < signed {
			out[i] = i < signed-int(h.NumReadonlySignedAccounts)
		} else {
			out[i] = i < len(out)-int(h.NumReadonlyUnsignedAccounts)
		}
		if reserved(key) {
			out[i] = false
		}
	}
	for _, ix := range m.Instructions {
		out[ix.ProgramIDIndex] = false
	}
	return out
}

// reserved reports whether the network reserves an account, which no transaction
// can then lock for writing.
func reserved(key solana.PublicKey) bool {
	return key == solana.SystemProgramID || key == solana.ComputeBudget || key == solana.AddressLookupTableProgramID
}

// VerifySignatures reports whether every signature is its account's signature of
// the message.
func (t *Transaction) VerifySignatures() bool {
	for i, signature := range t.Signatures {
		if !t.Keys[i].Verify(t.Bytes, signature) {
			return false
		}
	}
	return true
}

func (m *Message) isSigner(i int) bool { return i < int(m.Header.NumRequiredSignatures) }
