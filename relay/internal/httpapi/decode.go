package httpapi

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/viewingkey"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// readBody reads a JSON body of bounded size.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if err := checkMediaType(r.Header); err != nil {
		return nil, err
	}
	// The reader stops at the limit, so the length of a longer body is not known.
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, refusal.New(refusal.BodyTooLarge, "the body is larger than %d bytes, the most that this relay reads: send less", MaxBody)
	case err != nil:
		// The cause is left out: a network error contains the client's address.
		return nil, refusal.New(refusal.InvalidRequest, "the body broke off after %d bytes: send the whole of it", len(raw))
	}
	return raw, nil
}

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

// decodeRegistration reads the body of POST /viewing-key/register.
func decodeRegistration(raw []byte) (viewingkey.Registration, error) {
	var reg viewingkey.Registration
	o, err := parseObject(raw)
	if err != nil {
		return reg, err
	}
	if reg.UserPubkey, err = o.text(field{"user_pubkey", "the wallet's address in base58", maxAddressLength, refusal.InvalidRequest}); err != nil {
		return reg, err
	}
	if reg.ViewingKeyHex, err = o.text(field{"viewing_key", "64 hexadecimal digits", maxHex32Length, refusal.InvalidViewingKey}); err != nil {
		return reg, err
	}
	if reg.Signature, err = o.text(field{"signature", "the wallet's signature in base64, base58 or hexadecimal", maxSignatureLength, refusal.InvalidSignature}); err != nil {
		return reg, err
	}
	reg.Identifier, err = o.optionalText(field{"identifier", "64 hexadecimal digits", maxHex32Length, refusal.InvalidIdentifier})
	return reg, err
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
	// maxLength is the most bytes of the text; tooLong is the code for a longer one.
	maxLength int
	tooLong   refusal.Code
}

func (f field) check(text string) error {
	if len(text) > f.maxLength {
		return refusal.New(f.tooLong, "%s has %d characters: expected %s, at most %d", f.name, len(text), f.want, f.maxLength)
	}
	return nil
}

// object is a JSON object's members, undecoded. It distinguishes a missing member from
// one of the wrong kind, and names that differ only in letter case.
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
		// The decoder's message would quote the character.
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

// bytes decodes a member of at most size bytes. Fewer bytes are refused later, when
// they are parsed.
func (o object) bytes(name string, size int, tooLong refusal.Code) ([]byte, error) {
	s, err := o.text(field{name, base64Text, MaxBody, tooLong})
	if err != nil {
		return nil, err
	}
	if longest := base64.StdEncoding.EncodedLen(size); len(s) > longest {
		decoded := base64.StdEncoding.DecodedLen(len(s)) - len(s) + len(strings.TrimRight(s, "="))
		return nil, refusal.New(tooLong, "%s decodes to %d bytes, expected exactly %d: its text has %d characters, expected %d", name, decoded, size, len(s), longest)
	}
	return decodeBase64(name, s)
}

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

// decodeBase64 accepts the standard alphabet with padding and without line breaks. A
// lenient decoder would accept several texts for the same bytes.
func decodeBase64(name, s string) ([]byte, error) {
	refuse := func(format string, args ...any) error {
		return refusal.New(refusal.InvalidEncoding, "%s is not standard base64: %s", name, fmt.Sprintf(format, args...))
	}
	for i, c := range []byte(s) {
		switch {
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '+', c == '/', c == '=':
		case c == '-', c == '_':
			return nil, refuse("byte %d is of the URL alphabet; expected + and / instead of - and _", i)
		case c == '\r', c == '\n':
			return nil, refuse("byte %d is a line break; expected none", i)
		default:
			return nil, refuse("byte %d is outside the alphabet; expected A-Z, a-z, 0-9, + and /, padded with =", i)
		}
	}
	if len(s)%4 != 0 {
		return nil, refuse("it has %d characters; expected a multiple of four, padded with =", len(s))
	}
	b, err := base64.StdEncoding.Strict().DecodeString(s)
	if err != nil {
		return nil, refuse("its padding is wrong; expected = only at the end, and unused bits zero")
	}
	return b, nil
}
