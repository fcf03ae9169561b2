package feepayer

import (
	"context"
	"crypto/ed25519"
	"log/slog"

	"github.com/gagliardetto/solana-go"
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

// PublicKey returns the fee payer's address.
func (k *Key) PublicKey() solana.PublicKey { return k.public }

// Sign signs a serialised transaction message with ed25519. It never fails.
func (k *Key) Sign(_ context.Context, message []byte) (solana.Signature, error) {
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
