package viewingkey

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"golang.org/x/crypto/curve25519"
	"golang.org/x/crypto/nacl/box"
)

// PrivateKey is the compliance officer's X25519 private key, which opens viewing keys.
// No formatting verb shows it.
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

// checkPublicKey refuses a point of low order, such as zero: with such a key the shared secret of
// every box would be a known constant, and anybody could open the boxes. nacl/box does not check
// for such points. X25519 fails for them with every scalar, because clamping makes each scalar a
// multiple of the cofactor.
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
