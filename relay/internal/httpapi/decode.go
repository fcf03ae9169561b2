package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// decodeSubmission reads the body of POST /transact and POST /withdraw.
func decodeSubmission(raw []byte) (submission.Request, error) {
	o, err := parseObject(raw)
	if err != nil {
		return submission.Request{}, err
	}
	return o.submission()
}

func (o object) submission() (req submission.Request, err error) {
	if o.isRetiredWithdrawal() {
		return req, refusal.New(refusal.LegacyWithdrawRetired,
			"this body, with outputs, policy or nf, is of a retired form of POST /withdraw: send proof_bytes and public_inputs, as text, to POST /withdraw or POST /transact; update the client SDK")
	}
	if req.Proof, err = o.bytes("proof_bytes", shieldpool.ProofLength, refusal.InvalidProofLength); err != nil {
		return req, err
	}
	if req.PublicInputs, err = o.bytes("public_inputs", shieldpool.PublicInputsLength, refusal.InvalidPublicInputsLength); err != nil {
		return req, err
	}
	recipient, err := o.optionalText(field{"recipient", "the recipient's address in base58", maxAddressLength, refusal.InvalidRecipient})
	if err != nil {
		return req, err
	}
	if recipient != nil {
		req.Recipient = *recipient
	}
	req.Notes, err = o.notes()
	return req, err
}

// The longest texts in requests, in bytes, as in relay/openapi.yaml. A longer
// text is refused before it is decoded: the time to decode base58 grows with the
// square of the length.
const (
	maxAddressLength   = 44  // 32 bytes in base58
	maxHex32Length     = 64  // 32 bytes in hexadecimal
	maxSignatureLength = 128 // 64 bytes in hexadecimal, the longest of three encodings
	maxAmountLength    = 20  // 2^64-1
	// maxNoteLength is the length of a note as large as a whole transaction, in base64.
	maxNoteLength = (shieldpool.MaxTransactionSizeV1 + 2) / 3 * 4
)

// field is a member whose value is text.
type field struct {
	// name is the member's name; want describes the expected text.
	name, want string
	// maxLength is the largest length of the text in bytes; tooLong is the code for a longer one.
	maxLength int
	tooLong   refusal.Code
}

func (f field) check(text string) error {
	if len(text) > f.maxLength {
		return refusal.New(f.tooLong, "%s has %d characters: expected %s, at most %d", f.name, len(text), f.want, f.maxLength)
	}
	return nil
}

// object is a JSON object's members, undecoded. It distinguishes a missing member from one of
// the wrong kind. Names that differ only in letter case are different members.
type object map[string]json.RawMessage

// parseObject parses one JSON object and nothing after it.
func parseObject(raw []byte) (object, error) {
	var o object
	err := json.Unmarshal(raw, &o)
	var syntax *json.SyntaxError
	switch {
	case len(raw) == 0:
		return nil, refusal.New(refusal.InvalidJSON, "the body is empty: expected a JSON object")
	case errors.As(err, &syntax):
		// The decoder's own message would quote a character of the body.
		return nil, refusal.New(refusal.InvalidJSON, "the body is not JSON: it goes wrong at byte %d of %d; expected one JSON object and nothing after it", syntax.Offset, len(raw))
	case err != nil || o == nil:
		return nil, refusal.New(refusal.InvalidRequest, "the body is a JSON %s: expected an object", kindOf(raw))
	}
	return o, nil
}

// kindOf names the kind of a valid JSON value.
func kindOf(raw []byte) string {
	switch trimmed := strings.TrimLeft(string(raw), " \t\r\n"); trimmed[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	default:
		return "number"
	}
}

func (o object) text(f field) (string, error) {
	s, err := o.optionalText(f)
	if err != nil {
		return "", err
	}
	if s == nil {
		return "", refusal.New(refusal.InvalidRequest, "%s is missing: expected a string, %s", f.name, f.want)
	}
	return *s, nil
}

// optionalText returns nil when the member is missing or null.
func (o object) optionalText(f field) (*string, error) {
	raw, ok := o[f.name]
	if !ok || kindOf(raw) == "null" {
		return nil, nil //nolint:nilnil // no member and no fault
	}
	return stringOf(raw, f)
}

func stringOf(raw json.RawMessage, f field) (*string, error) {
	if kind := kindOf(raw); kind != "string" {
		return nil, refusal.New(refusal.InvalidRequest, "%s is a JSON %s: expected a string, %s", f.name, kind, f.want)
	}
	s := new(string)
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, fmt.Errorf("decode a JSON string that was found valid: %w", err)
	}
	return s, f.check(*s)
}

const base64Text = "bytes in standard base64"

// notes returns nil when the member is missing or null. The total size is checked
// later, against what fits a transaction.
func (o object) notes() ([][]byte, error) {
	const name = "encrypted_notes"
	raw, ok := o[name]
	if !ok || kindOf(raw) == "null" {
		return nil, nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, refusal.New(refusal.InvalidRequest, "%s is a JSON %s: expected an array of strings, each %s", name, kindOf(raw), base64Text)
	}
	if len(items) > shieldpool.MaxNotes {
		return nil, refusal.New(refusal.TooManyNotes, "%s has %d entries, expected at most %d", name, len(items), shieldpool.MaxNotes)
	}
	notes := make([][]byte, len(items))
	for i, item := range items {
		entry := fmt.Sprintf("%s[%d]", name, i)
		s, err := stringOf(item, field{entry, base64Text, maxNoteLength, refusal.NotesTooLarge})
		if err != nil {
			return nil, err
		}
		if notes[i], err = decodeBase64(entry, *s); err != nil {
			return nil, err
		}
	}
	return notes, nil
}
