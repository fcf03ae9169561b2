package viewingkey

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/refusal"
)

// walletOf is a wallet with its signature of a message.
func walletOf(t *testing.T, message string) (user, signature string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return solana.PublicKeyFromBytes(public).String(), base64.StdEncoding.EncodeToString(ed25519.Sign(private, []byte(message)))
}

// TestNewKeysOfAnHourAreBounded: what the table grows by is, however many keys
// or wallets somebody makes, and who is registered is served all the same.
func TestNewKeysOfAnHourAreBounded(t *testing.T) {
	t.Parallel()
	const message = "Sign in"
	public, _, err := GenerateComplianceKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	clock := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	kept := &memoryStore{}
	s, err := New(Options{Store: kept, Messages: []string{message}, CompliancePublicKey: public, Random: rand.Reader, Now: func() time.Time { return clock }})
	if err != nil {
		t.Fatal(err)
	}
	var made uint64
	register := func(user, signature, key string) (wait time.Duration, refused bool) {
		t.Helper()
		_, err := s.Register(t.Context(), Registration{UserPubkey: user, ViewingKeyHex: key, Signature: signature})
		r, refused := refusal.As(err)
		if err != nil && (!refused || r.Code != refusal.RateLimited) {
			t.Fatal(err)
		}
		if refused {
			wait = r.RetryAfter
		}
		return wait, refused
	}
	newKey := func() string {
		var key [32]byte
		made++
		binary.BigEndian.PutUint64(key[:], made)
		return hex.EncodeToString(key[:])
	}
	user, signature := walletOf(t, message)
	first := newKey()
	register(user, signature, first)
	for range newPerWallet + 5 {
		register(user, signature, newKey())
	}
	if n := len(kept.records); n != newPerWallet {
		t.Errorf("one wallet registered %d keys within an hour, want %d", n, newPerWallet)
	}
	for range newPerHour/newPerWallet + 1 {
		user, signature := walletOf(t, message)
		for range newPerWallet {
			register(user, signature, newKey())
		}
	}
	if n := len(kept.records); n != newPerHour {
		t.Errorf("%d keys were registered within an hour, want %d", n, newPerHour)
	}
	clock = clock.Add(45 * time.Minute)
	if _, refused := register(user, signature, first); refused {
		t.Error("a key that is registered is refused")
	}
	another, its := walletOf(t, message)
	if wait, refused := register(another, its, newKey()); !refused || wait != 15*time.Minute {
		t.Errorf("a new key is refused %t until %v later, want the rest of the hour", refused, wait)
	}
	clock = clock.Add(15 * time.Minute)
	if _, refused := register(another, its, newKey()); refused {
		t.Error("a new key is refused in the next hour")
	}
}
