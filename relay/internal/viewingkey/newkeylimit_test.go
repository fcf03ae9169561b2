package viewingkey

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/refusal"
)

// walletOf makes a wallet. It returns the public key in base58 and the signature over
// the message in base64.
func walletOf(t *testing.T, message string) (user, signature string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return solana.PublicKeyFromBytes(public).String(), base64.StdEncoding.EncodeToString(ed25519.Sign(private, []byte(message)))
}

// TestNewKeysOfAnHourAreBounded: the growth of the table is bounded, however many
// keys or wallets clients make. Keys that are already registered are accepted all the
// same.
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
	var made, clients uint64
	register := func(address, user, signature, key string) (wait time.Duration, refused bool) {
		t.Helper()
		_, err := s.Register(t.Context(), Registration{UserPubkey: user, ViewingKeyHex: key, Signature: signature, Address: address})
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
	// full registers as many new keys as one new client address may.
	full := func() (address string) {
		clients++
		address = fmt.Sprint("client ", clients)
		for range maxPerAddress/maxPerWallet + 1 {
			user, signature := walletOf(t, message)
			for range maxPerWallet {
				register(address, user, signature, newKey())
			}
		}
		return address
	}
	user, signature := walletOf(t, message)
	first := newKey()
	register("", user, signature, first)
	for range maxPerWallet + 5 {
		register("", user, signature, newKey())
	}
	if n := len(kept.records); n != maxPerWallet {
		t.Errorf("one wallet registered %d keys within an hour, want %d", n, maxPerWallet)
	}
	exhausted := full()
	if n := len(kept.records); n != maxPerWallet+maxPerAddress {
		t.Errorf("one address registered %d keys within an hour, want %d", n-maxPerWallet, maxPerAddress)
	}
	for range maxPerHour / maxPerAddress {
		full()
	}
	if n := len(kept.records); n != maxPerHour {
		t.Errorf("%d keys were registered within an hour, want %d", n, maxPerHour)
	}
	clock = clock.Add(45 * time.Minute)
	if _, refused := register(exhausted, user, signature, first); refused {
		t.Error("a key that is registered is refused")
	}
	another, its := walletOf(t, message)
	if wait, refused := register("new", another, its, newKey()); !refused || wait != 15*time.Minute {
		t.Errorf("a new key is refused %t until %v later, want the rest of the hour", refused, wait)
	}
	clock = clock.Add(15 * time.Minute)
	if _, refused := register(exhausted, another, its, newKey()); refused {
		t.Error("a new key is refused in the next hour")
	}
}

// failingStore fails its first inserts, and calls leave during each of them.
type failingStore struct {
	memoryStore
	failures int
	leave    func()
}

func (f *failingStore) PutViewingKey(ctx context.Context, r Record) (*Record, error) {
	if f.failures--; f.failures >= 0 {
		f.leave()
		return nil, errors.New("the database is unreachable")
	}
	return f.memoryStore.PutViewingKey(ctx, r)
}

// TestKeysThatWereNotStoredAreNotCounted: a key whose insert failed does not count
// against the limit, unless its request was cancelled: then the key may have been
// stored.
func TestKeysThatWereNotStoredAreNotCounted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ leaves, refused bool }{
		"a failed insert is not counted":                    {},
		"a failed insert of a cancelled request is counted": {leaves: true, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kept := &failingStore{failures: maxPerWallet}
			s, _ := officer(t, kept, "Sign in")
			user, signature := walletOf(t, "Sign in")
			var err error
			for range maxPerWallet + 1 {
				ctx, leave := context.WithCancel(t.Context())
				kept.leave = func() {
					if tt.leaves {
						leave()
					}
				}
				_, err = s.Register(ctx, Registration{UserPubkey: user, ViewingKeyHex: strings.Repeat("7f", 32), Signature: signature})
				leave()
			}
			if _, refused := refusal.As(err); refused != tt.refused || !refused && err != nil {
				t.Errorf("after %d inserts that failed, the next is answered %v", maxPerWallet, err)
			}
		})
	}
}
