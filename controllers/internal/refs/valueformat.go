package refs

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/url"

	"sigs.k8s.io/yaml"

	"github.com/relaypool/relaypool/relay/cafile"
	"github.com/relaypool/relaypool/relay/keyfile"
)

// valueFormat says what a value must be.
type valueFormat int

const (
	databaseURL valueFormat = iota
	httpURL
	httpsURL
	payerKey
	headerValue
	nonEmpty
	verifyingKey
	profile
	// certificates are the authorities of a server's certificate, clientCertificate and clientKey
	// a certificate for the database. The next three are for the key services of signers. Relays
	// read the files of all these again when they change.
	certificates
	clientCertificate
	clientKey
	signerToken
	awsCredentials
	gcpCredentials
	// pullSecret is an image pull secret. Only the kubelet reads its values.
	pullSecret
	// podVariables and podFile are objects that spec.template.podTemplate names, whose values only
	// pods read: podVariables for environment variables, which a pod reads when it starts, and
	// podFile for files, which the kubelet keeps up to date.
	podVariables
	podFile
)

// isWhole reports whether the object as a whole is meant, whose values the operator does not check.
func (f valueFormat) isWhole() bool { return f == pullSecret || f == podVariables || f == podFile }

// keepsValue reports whether a value of this format is kept, because the checks of the pool need
// it. Only values of ConfigMaps are kept.
func (f valueFormat) keepsValue() bool { return f == verifyingKey || f == profile }

// changeReplacesPods reports whether pods have to be replaced when a value of this format changes.
// The kubelet reads a pull secret for each new pod, relays read the files of certificates and of
// signers again, and what else reads a file of its own is not ours to restart.
func (f valueFormat) changeReplacesPods() bool {
	switch f {
	case certificates, clientCertificate, clientKey, signerToken, awsCredentials, gcpCredentials, pullSecret, podFile:
		return false
	default:
		return true
	}
}

// evaluate checks a value. It ignores the white space around the value, as the relay does. For a
// payer's key it returns the address. If the value is valid, fault is empty. If the value is
// invalid, fault completes "the value …": what was received and what was expected, without the
// value itself.
func (f valueFormat) evaluate(value []byte) (address, fault string) {
	value = bytes.TrimSpace(value)
	if len(value) == 0 {
		return "", "is empty: expected " + f.expected()
	}
	switch f {
	case databaseURL:
		return "", f.faultOf(value, isURL(value, "postgres", "postgresql"))
	case httpURL:
		return "", f.faultOf(value, isURL(value, "http", "https"))
	case httpsURL:
		return "", f.faultOf(value, isURL(value, "https"))
	case payerKey:
		private, err := keyfile.Parse(value)
		if err != nil {
			return "", fmt.Sprintf("is not a fee payer key: %v", err)
		}
		defer clear(private)
		return keyfile.Address(private), ""
	case headerValue, signerToken:
		return "", f.faultOf(value, !bytes.ContainsFunc(value, unprintable))
	case verifyingKey, gcpCredentials:
		return "", f.faultOf(value, isJSONObject(value))
	case profile:
		return "", f.faultOf(value, isYAMLMapping(value))
	case certificates:
		_, err := cafile.Parse(value) // as relays do: an error that they would report has to show here
		return "", f.faultOf(value, err == nil)
	case clientCertificate:
		return "", f.faultOf(value, isCertificateChain(value))
	case nonEmpty, clientKey, awsCredentials, pullSecret, podVariables, podFile:
	}
	return "", ""
}

func (f valueFormat) faultOf(value []byte, ok bool) string {
	if ok {
		return ""
	}
	return fmt.Sprintf("has %d bytes that are not %s", len(value), f.expected())
}

func (f valueFormat) expected() string {
	switch f {
	case databaseURL:
		return "a Postgres URL, postgres://user:password@host:port/name"
	case httpURL:
		return "a URL that begins with http:// or https:// and names a host"
	case httpsURL:
		return "a URL that begins with https:// and names a host, because caFrom is set"
	case payerKey:
		return "a private key as relay keygen writes it, a JSON array of 64 numbers or base58"
	case headerValue, signerToken:
		return "one line of printable characters"
	case certificates:
		return "certificates in PEM, at least one, and nothing else in PEM"
	case clientCertificate:
		return "a certificate in PEM"
	case clientKey:
		return "the certificate's private key in PEM, without a password"
	case awsCredentials:
		return "a shared credentials file of AWS"
	case gcpCredentials:
		return "a JSON object, a credentials file of Google Cloud"
	case nonEmpty:
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
			// A Postgres URL for a Unix socket names the host in its query.
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

// isCertificateChain reports whether value has a certificate in PEM, perhaps with those of
// authorities between it and a trusted one.
func isCertificateChain(value []byte) bool {
	found := false
	for block, rest := pem.Decode(value); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return false
		}
		found = true
	}
	return found
}

func isYAMLMapping(value []byte) bool {
	var mapping map[string]any
	return yaml.Unmarshal(value, &mapping) == nil && mapping != nil
}
