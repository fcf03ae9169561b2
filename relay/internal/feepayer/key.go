// Package feepayer holds the keys that pay the relay's network fees and the rent of
// nullifier accounts, tracks their balances and chooses which of them pays next. No
// client's money passes through them.
package feepayer

import (
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/keyfile"
)

const redacted = "[fee payer key]"

// Key is an ed25519 private key that is never shown: printing, logging or encoding it in any way
// gives a placeholder. It is a txmgr.Payer.
type Key struct {
	public solana.PublicKey
	// private is behind a function because fmt prints the bytes of unexported fields at any
	// depth without calling the type's String.
	private func() ed25519.PrivateKey
}

func newKey(private ed25519.PrivateKey) *Key {
	return &Key{
		public:  solana.PublicKeyFromBytes(private[ed25519.SeedSize:]),
		private: func() ed25519.PrivateKey { return private },
	}
}

// Parse decodes a key as Solana's tools write it: a JSON array of 64 numbers, or base58 of
// 64 bytes. The private half comes first, then the public half, which must belong to it.
// Errors hold lengths, never content.
func Parse(content []byte) (*Key, error) {
	private, err := keyfile.Parse(content)
	if err != nil {
		return nil, err
	}
	return newKey(private), nil
}

// ReadFile reads a key from a file, in either form that Parse accepts.
func ReadFile(path string) (*Key, error) {
	content, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return nil, fmt.Errorf("read fee payer key: %w", err)
	}
	key, err := Parse(content)
	if err != nil {
		return nil, fmt.Errorf("read fee payer key %s: %w", path, err)
	}
	return key, nil
}

// PublicKey returns the fee payer's address.
func (k *Key) PublicKey() solana.PublicKey { return k.public }

// Sign signs a serialised transaction message with ed25519. It never fails.
func (k *Key) Sign(message []byte) (solana.Signature, error) {
	return solana.SignatureFromBytes(ed25519.Sign(k.private(), message)), nil
}

// String returns a placeholder.
func (k *Key) String() string { return redacted }

// GoString returns a placeholder.
func (k *Key) GoString() string { return redacted }

// LogValue returns a placeholder.
func (k *Key) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText returns a placeholder, which encoding/json uses too.
func (k *Key) MarshalText() ([]byte, error) { return []byte(redacted), nil }
