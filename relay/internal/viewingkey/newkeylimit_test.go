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

// newWallet makes a wallet. It returns the public key in base58 and the signature over
// the message in base64.
func newWallet(t *testing.T, message string) (user, signature string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return solana.PublicKeyFromBytes(public).String(), base64.StdEncoding.EncodeToString(ed25519.Sign(private, []byte(message)))
}

// TestNewKeysOfAnHourAreBounded: the growth of the table is bounded, however many keys
// or wallets clients make. Registered keys are still accepted.
func TestNewKeysOfAnHourAreBounded(t *testing.T) {
	t.Parallel()
	const message = "Sign in"
	public, _, err := GenerateComplianceKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	clock := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	store := &memoryStore{}
	s, err := New(Options{Store: store, Messages: []string{message}, CompliancePublicKey: public, Random: rand.Reader, Now: func() time.Time { return clock }})
	if err != nil {
		t.Fatal(err)
	}
	var keys, clients uint64
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
		keys++
		binary.BigEndian.PutUint64(key[:], keys)
		return hex.EncodeToString(key[:])
	}
	// fillAddress registers as many new keys as one client address may, from a new
	// address.
	fillAddress := func() (address string) {
		clients++
		address = fmt.Sprint("client ", clients)
		for range maxPerAddress/maxPerWallet + 1 {
			user, signature := newWallet(t, message)
			for range maxPerWallet {
				register(address, user, signature, newKey())
			}
		}
		return address
	}
	user, signature := newWallet(t, message)
	first := newKey()
	register("", user, signature, first)
	for range maxPerWallet + 5 {
		register("", user, signature, newKey())
	}
	if n := len(store.records); n != maxPerWallet {
		t.Errorf("one wallet registered %d keys within an hour, want %d", n, maxPerWallet)
	}
	fullAddress := fillAddress()
	if n := len(store.records); n != maxPerWallet+maxPerAddress {
		t.Errorf("one address registered %d keys within an hour, want %d", n-maxPerWallet, maxPerAddress)
	}
	for range maxPerHour / maxPerAddress {
		fillAddress()
	}
	if n := len(store.records); n != maxPerHour {
		t.Errorf("%d keys were registered within an hour, want %d", n, maxPerHour)
	}
	clock = clock.Add(45 * time.Minute)
	if _, refused := register(fullAddress, user, signature, first); refused {
		t.Error("a registered key is refused")
	}
	another, anotherSignature := newWallet(t, message)
	if wait, refused := register("new", another, anotherSignature, newKey()); !refused || wait != 15*time.Minute {
		t.Errorf("a new key is refused: %t, with RetryAfter %v; want true and the rest of the hour", refused, wait)
	}
	clock = clock.Add(15 * time.Minute)
	if _, refused := register(fullAddress, another, anotherSignature, newKey()); refused {
		t.Error("a new key is refused in the next hour")
	}
}

// failingStore fails its first inserts, and calls cancel during each of them.
type failingStore struct {
	memoryStore
	failures int
	cancel   func()
}

func (f *failingStore) PutViewingKey(ctx context.Context, r Record) (*Record, error) {
	if f.failures--; f.failures >= 0 {
		f.cancel()
		return nil, errors.New("the database is unreachable")
	}
	return f.memoryStore.PutViewingKey(ctx, r)
}

// TestUnstoredKeysAreNotCounted: a key whose insert failed does not count
// against the limit, unless its request was cancelled: then the key may have been
// stored.
func TestUnstoredKeysAreNotCounted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ cancelled, refused bool }{
		"a failed insert is not counted":                    {},
		"a failed insert of a cancelled request is counted": {cancelled: true, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &failingStore{failures: maxPerWallet}
			s, _ := newTestService(t, store, "Sign in")
			user, signature := newWallet(t, "Sign in")
			var err error
			for range maxPerWallet + 1 {
				ctx, cancel := context.WithCancel(t.Context())
				store.cancel = func() {
					if tt.cancelled {
						cancel()
					}
				}
				_, err = s.Register(ctx, Registration{UserPubkey: user, ViewingKeyHex: strings.Repeat("7f", 32), Signature: signature})
				cancel()
			}
			if _, refused := refusal.As(err); refused != tt.refused || !refused && err != nil {
				t.Errorf("after %d failed inserts, the error is %v; the key has to be refused: %t", maxPerWallet, err, tt.refused)
			}
		})
	}
}
