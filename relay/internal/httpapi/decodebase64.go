package httpapi

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/relaypool/relaypool/relay/refusal"
)

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
