package refs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"

	"sigs.k8s.io/yaml"

	"github.com/relaypool/relaypool/relay/keyfile"
)

// check says what a value must be.
type check int

const (
	databaseURL check = iota
	httpURL
	payerKey
	headerValue
	someLine
	verifyingKey
	profile
	// pullSecret is an image pull secret: only the kubelet reads its values.
	pullSecret
)

// keepsValue reports whether the value of a ConfigMap is kept for the pool's checks.
func (c check) keepsValue() bool { return c == verifyingKey || c == profile }

// evaluate checks a value without the white space around it, which the relay ignores too. For
// a payer's key it returns the address. fault is empty or completes "the value …": it
// gives the length of what was received, and what was expected.
func (c check) evaluate(value []byte) (address, fault string) {
	value = bytes.TrimSpace(value)
	if len(value) == 0 {
		return "", "is empty: expected " + c.expected()
	}
	switch c {
	case databaseURL:
		return "", c.faultOf(value, isURL(value, "postgres", "postgresql"))
	case httpURL:
		return "", c.faultOf(value, isURL(value, "http", "https"))
	case payerKey:
		private, err := keyfile.Parse(value)
		if err != nil {
			return "", fmt.Sprintf("is no fee payer key: %v", err)
		}
		defer clear(private)
		return keyfile.Address(private), ""
	case headerValue:
		return "", c.faultOf(value, !bytes.ContainsFunc(value, unprintable))
	case verifyingKey:
		return "", c.faultOf(value, isJSONObject(value))
	case profile:
		return "", c.faultOf(value, isYAMLMapping(value))
	case someLine, pullSecret:
	}
	return "", ""
}

func (c check) faultOf(value []byte, ok bool) string {
	if ok {
		return ""
	}
	return fmt.Sprintf("has %d bytes that are not %s", len(value), c.expected())
}

func (c check) expected() string {
	switch c {
	case databaseURL:
		return "a Postgres URL, postgres://user:password@host:port/name"
	case httpURL:
		return "a URL that begins with http:// or https:// and names a host"
	case payerKey:
		return "a private key as relay keygen writes it, a JSON array of 64 numbers or base58"
	case headerValue:
		return "one line of printable characters"
	case someLine:
		return "at least one line"
	case verifyingKey:
		return "a JSON object, snarkjs' verification_key.json"
	case profile:
		return "a YAML mapping, a program profile"
	}
	return "a value"
}

// isURL reports whether value is a URL with a host and one of the schemes. The parser's
// error is dropped, because it repeats the value.
func isURL(value []byte, schemes ...string) bool {
	u, err := url.Parse(string(value))
	if err != nil {
		return false
	}
	for _, scheme := range schemes {
		if u.Scheme == scheme {
			// A Postgres URL may name the host in its query, for sockets.
			return u.Host != "" || (scheme[0] == 'p' && u.Query().Get("host") != "")
		}
	}
	return false
}

func unprintable(r rune) bool { return r < ' ' || r > '~' }

func isJSONObject(value []byte) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal(value, &object) == nil && object != nil
}

func isYAMLMapping(value []byte) bool {
	var mapping map[string]any
	return yaml.Unmarshal(value, &mapping) == nil && mapping != nil
}
