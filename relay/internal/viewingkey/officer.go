package viewingkey

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/crypto/curve25519"
	"golang.org/x/crypto/nacl/box"
)

// privateKeyHeader is the first word of a private key file. It shows people what the
// file is, and lets programs refuse other files that hold 64 digits.
const privateKeyHeader = "relaypool-compliance-private-key-v1"

// PrivateKey is the officer's X25519 private key, which opens viewing keys.
// Formatting it, with any verb, does not show it.
type PrivateKey struct{ bytes [32]byte }

// Format keeps the key out of logs and messages.
func (PrivateKey) Format(s fmt.State, _ rune) {
	_, _ = io.WriteString(s, "[compliance private key]") // Format cannot return an error
}

// GenerateComplianceKey makes the officer's key pair from the random source. The
// public half goes into the relay's configuration, the private half stays with
// the officer, offline.
func GenerateComplianceKey(random io.Reader) (public [32]byte, private PrivateKey, err error) {
	pub, priv, err := box.GenerateKey(random)
	if err != nil {
		return [32]byte{}, PrivateKey{}, fmt.Errorf("generate compliance key: %w", err)
	}
	return *pub, PrivateKey{*priv}, nil
}

// KeyID names a compliance public key: the first 16 hexadecimal digits of its sha256.
func KeyID(public [32]byte) string {
	sum := sha256.Sum256(public[:])
	return hex.EncodeToString(sum[:8])
}

// ParsePublicKey reads a compliance public key from 64 hexadecimal digits. It refuses
// a key with which sealing protects nothing.
func ParsePublicKey(text string) ([32]byte, error) {
	public, fault := parseHex32(text)
	if fault != "" {
		return [32]byte{}, fmt.Errorf("compliance public key: want 64 hexadecimal digits, as `relay compliance keygen` prints them, received %s", fault)
	}
	return public, checkPublicKey(public)
}

// checkPublicKey refuses a point of low order, such as zero: with it the shared
// secret of every box would be a known constant, and anybody could open them.
// nacl/box does not check for such points. X25519 fails for them with every scalar,
// because clamping makes each scalar a multiple of the cofactor.
func checkPublicKey(public [32]byte) error {
	if _, err := curve25519.X25519(make([]byte, curve25519.ScalarSize), public[:]); err != nil {
		return errors.New("compliance public key: missing, or a value under which anybody could open viewing keys; make a pair with `relay compliance keygen`")
	}
	return nil
}

// public derives the public half.
func (k PrivateKey) public() (public [32]byte) {
	curve25519.ScalarBaseMult(&public, &k.bytes)
	return public
}

// EncodePrivateKey returns the content of a private key file: one line of
// header, key id and 64 hexadecimal digits. The key id identifies the key and
// detects damage.
func EncodePrivateKey(private PrivateKey) []byte {
	return fmt.Appendf(nil, "%s %s %x\n", privateKeyHeader, KeyID(private.public()), private.bytes)
}

// ParsePrivateKey is the inverse of EncodePrivateKey. Its errors show nothing of
// the content.
func ParsePrivateKey(content []byte) (PrivateKey, error) {
	fields := strings.Fields(string(content))
	if len(fields) != 3 || fields[0] != privateKeyHeader {
		return PrivateKey{}, fmt.Errorf("compliance private key: want one line %q, as `relay compliance keygen` writes it, received %d bytes of another form", privateKeyHeader+" <key id> <64 hexadecimal digits>", len(content))
	}
	var private PrivateKey
	var fault string
	if private.bytes, fault = parseHex32(fields[2]); fault != "" {
		return PrivateKey{}, fmt.Errorf("compliance private key: want 64 hexadecimal digits after the key id, received %s", fault)
	}
	if KeyID(private.public()) != fields[1] {
		return PrivateKey{}, errors.New("compliance private key: the key does not belong to the key id beside it; the file is damaged, restore it from a backup")
	}
	return private, nil
}

// WritePrivateKeyFile writes the key durably to a new file that only its owner can
// read (0600). It never overwrites a file: a lost compliance key makes everything
// sealed to it unreadable.
func WritePrivateKeyFile(path string, private PrivateKey) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write compliance private key: %w", err)
	}
	_, err = file.Write(EncodePrivateKey(private))
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		// A partly written file must not be mistaken for a key.
		return fmt.Errorf("write compliance private key: %w", errors.Join(err, os.Remove(path)))
	}
	return nil
}
