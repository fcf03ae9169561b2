package router

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/swap"
)

// maxAddress is the longest base58 text of 32 bytes. Longer text is refused before it is
// decoded, because decoding time grows with the square of the length.
const maxAddress = 44

func badResponse(format string, args ...any) *swap.RouterUnavailable {
	return &swap.RouterUnavailable{Kind: swap.FaultBadResponse, Detail: fmt.Sprintf(format, args...)}
}

// object is a JSON object's values by their exact keys. encoding/json would also accept
// keys in another letter case, and take the last of several values: the relay could then
// check one value while the router uses another.
type object map[string]json.RawMessage

// parseObject parses one object and nothing after it. All keys must be different.
func parseObject(text []byte) (object, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, errors.New("not a JSON object")
	}
	o := object{}
	for decoder.More() {
		key, err := decoder.Token()
		name, ok := key.(string)
		if err != nil || !ok {
			return nil, errors.New("not valid JSON")
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, errors.New("not valid JSON")
		}
		if _, repeated := o[name]; repeated {
			return nil, errors.New("a key is repeated")
		}
		o[name] = value
	}
	if _, err := decoder.Token(); err != nil {
		return nil, errors.New("the object is cut off")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text follows the object")
	}
	return o, nil
}

func isObject(text []byte) bool {
	_, err := parseObject(text)
	return err == nil
}

// errorCode returns the error code of an answer; ok reports whether the answer is a
// refusal.
func errorCode(body []byte) (code string, ok bool) {
	o, err := parseObject(body)
	if err != nil {
		return "", false
	}
	code, err = o.text("errorCode")
	return code, err == nil || o.has("error") || o.has("errorCode")
}

// has reports whether the key has a value other than null.
func (o object) has(key string) bool {
	return len(o[key]) > 0 && !bytes.Equal(o[key], []byte("null"))
}

// reader reads an object's values and keeps the first fault. Its messages name keys, never
// values.
type reader struct {
	object
	fault error
}

func (r *reader) fail(key, expected string) {
	if r.fault == nil {
		r.fault = badResponse("%s: expected %s", key, expected)
	}
}

func (o object) text(key string) (string, error) {
	var text *string
	if err := json.Unmarshal(o[key], &text); err != nil || text == nil {
		return "", errors.New("not text")
	}
	return *text, nil
}

func (r *reader) text(key string) string {
	text, err := r.object.text(key)
	if err != nil {
		r.fail(key, "text")
	}
	return text
}

// address reads 32 bytes of base58.
func (r *reader) address(key string) solana.PublicKey {
	text, err := r.object.text(key)
	address, ok := parseAddress(text)
	if err != nil || !ok {
		r.fail(key, "32 bytes in base58")
	}
	return address
}

func parseAddress(text string) (solana.PublicKey, bool) {
	if len(text) > maxAddress {
		return solana.PublicKey{}, false
	}
	address, err := solana.PublicKeyFromBase58(text)
	return address, err == nil
}

// amount reads a whole number below 2^64 that is written as a string.
func (r *reader) amount(key string) uint64 {
	text, err := r.object.text(key)
	n, invalid := strconv.ParseUint(text, 10, 64)
	if err != nil || invalid != nil || (len(text) > 1 && text[0] == '0') {
		r.fail(key, "a whole number of 0 or more below 2^64, as text")
	}
	return n
}

// number reads a JSON number that is whole and not negative.
func (r *reader) number(key string) uint64 {
	var n *uint64
	if err := json.Unmarshal(r.object[key], &n); err != nil || n == nil {
		r.fail(key, "a whole number of 0 or more")
		return 0
	}
	return *n
}

func (r *reader) boolean(key string) bool {
	var b *bool
	if err := json.Unmarshal(r.object[key], &b); err != nil || b == nil {
		r.fail(key, "true or false")
		return false
	}
	return *b
}

// list reads an array. If the array is not required, it may be missing or null; list then
// returns nil.
func (r *reader) list(key string, required bool) []json.RawMessage {
	var list *[]json.RawMessage
	switch {
	case !r.has(key) && !required:
		return nil
	case json.Unmarshal(r.object[key], &list) != nil || list == nil:
		r.fail(key, "a list")
		return nil
	}
	return *list
}

// bytes reads standard base64 with its padding, without line breaks.
func (r *reader) bytes(key string) []byte {
	text, err := r.object.text(key)
	data, invalid := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || invalid != nil || strings.ContainsAny(text, "\r\n") {
		r.fail(key, "base64")
	}
	return data
}
