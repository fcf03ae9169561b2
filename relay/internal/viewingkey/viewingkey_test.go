package viewingkey

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/refusal"
)

// signIn is the vector sign_in of testdata/solana.json, made with web3.js and
// tweetnacl.
type signIn struct {
	MessageHex      string `json:"message_hex"`
	UserPubkey      string `json:"user_pubkey"`
	ViewingKey      string `json:"viewing_key"`
	SignatureBase64 string `json:"signature_base64"`
	SignatureBase58 string `json:"signature_base58"`
	SignatureHex    string `json:"signature_hex"`
	Identifier      string `json:"identifier"`
}

func (v signIn) message(t testing.TB) string {
	t.Helper()
	b, err := hex.DecodeString(v.MessageHex)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func readSignIn(t testing.TB) signIn {
	t.Helper()
	content, err := os.ReadFile("testdata/solana.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		SignIn signIn `json:"sign_in"`
	}
	if err := json.Unmarshal(content, &file); err != nil {
		t.Fatal(err)
	}
	return file.SignIn
}

// memoryStore resolves races as a primary key does: the first insert wins.
type memoryStore struct {
	mu      sync.Mutex
	records map[[32]byte]Record
	err     error
}

func (m *memoryStore) ViewingKey(_ context.Context, identifier [32]byte) (*Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return nil, m.err
	}
	if existing, ok := m.records[identifier]; ok {
		return &existing, nil
	}
	return nil, nil
}

func (m *memoryStore) PutViewingKey(_ context.Context, r Record) (*Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return nil, m.err
	}
	if existing, ok := m.records[r.Identifier]; ok {
		return &existing, nil
	}
	if m.records == nil {
		m.records = map[[32]byte]Record{}
	}
	m.records[r.Identifier] = r
	return nil, nil
}

// newTestService makes a service over a store, and returns the private key that opens
// its records.
func newTestService(t testing.TB, store Store, messages ...string) (*Service, PrivateKey) {
	t.Helper()
	public, private, err := GenerateComplianceKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Store: store, Messages: messages, CompliancePublicKey: public, Random: rand.Reader, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return s, private
}

func TestRegisterVector(t *testing.T) {
	t.Parallel()
	v := readSignIn(t)
	ownIdentifier := strings.Repeat("AB", 32)
	tests := map[string]struct {
		change         func(*Registration)
		messages       []string
		wantIdentifier string
	}{
		"with a base64 signature":               {change: func(*Registration) {}, wantIdentifier: v.Identifier},
		"with a base58 signature":               {change: func(r *Registration) { r.Signature = v.SignatureBase58 }, wantIdentifier: v.Identifier},
		"with a hexadecimal signature":          {change: func(r *Registration) { r.Signature = v.SignatureHex }, wantIdentifier: v.Identifier},
		"with an upper-case viewing key":        {change: func(r *Registration) { r.ViewingKeyHex = strings.ToUpper(v.ViewingKey) }, wantIdentifier: v.Identifier},
		"with its own identifier":               {change: func(r *Registration) { r.Identifier = &ownIdentifier }, wantIdentifier: strings.ToLower(ownIdentifier)},
		"with the message as the second of two": {change: func(*Registration) {}, messages: []string{"another message"}, wantIdentifier: v.Identifier},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &memoryStore{}
			s, private := newTestService(t, store, append(tt.messages, v.message(t))...)
			reg := Registration{UserPubkey: v.UserPubkey, ViewingKeyHex: v.ViewingKey, Signature: v.SignatureBase64}
			tt.change(&reg)
			for range 2 { // the second time changes nothing
				identifier, err := s.Register(t.Context(), reg)
				if err != nil {
					t.Fatal(err)
				}
				if identifier != tt.wantIdentifier {
					t.Errorf("identifier %s, want %s", identifier, tt.wantIdentifier)
				}
			}
			if len(store.records) != 1 {
				t.Fatalf("%d records, want 1", len(store.records))
			}
			for _, r := range store.records {
				opened, err := Open(private, r)
				if err != nil {
					t.Fatal(err)
				}
				if got := hex.EncodeToString(opened[:]); got != v.ViewingKey {
					t.Error("the officer opens another viewing key than was registered")
				}
				if bytes.Contains(r.Sealed, opened[:]) {
					t.Error("the viewing key is stored unsealed")
				}
				if r.KeyID != s.keyID || len(r.Sealed) != SealedSize {
					t.Errorf("key id %s, %d bytes sealed; want %s, %d", r.KeyID, len(r.Sealed), s.keyID, SealedSize)
				}
			}
		})
	}
}

// TestStoredBytes compares the hashes that protocol.md defines with values
// computed outside this package.
func TestStoredBytes(t *testing.T) {
	t.Parallel()
	v := readSignIn(t)
	id, _ := parseHex32(v.Identifier)
	key, _ := parseHex32(v.ViewingKey)
	got := fingerprint(id, key)
	if want := "b48c1a0228a952bfbc6855341cd826f97b54fd518bacf032ee5c7ee1a8939e9d"; hex.EncodeToString(got[:]) != want {
		t.Errorf("fingerprint %x, want %s", got, want)
	}
	public, _ := parseHex32(strings.Repeat("01", 32))
	if got, want := KeyID(public), "72cd6e8422c407fb"; got != want {
		t.Errorf("key id %s, want %s", got, want)
	}
}

func TestRegisterRefuses(t *testing.T) {
	t.Parallel()
	v := readSignIn(t)
	stranger := ed25519.NewKeyFromSeed(make([]byte, 32))
	signature := func(key ed25519.PrivateKey, message string) string {
		return base64.StdEncoding.EncodeToString(ed25519.Sign(key, []byte(message)))
	}
	pubkey := func(b ...byte) string {
		var key solana.PublicKey
		copy(key[:], b)
		return key.String()
	}
	text := func(s string) *string { return &s }
	// y = p+1 is a second encoding of the identity, which the point's decoder accepts.
	nonCanonical := append([]byte{0xee}, bytes.Repeat([]byte{0xff}, 30)...)
	nonCanonical = append(nonCanonical, 0x7f)

	tests := map[string]struct {
		change   func(*Registration)
		wantCode refusal.Code
		wantText string
	}{
		"no user_pubkey": {func(r *Registration) { r.UserPubkey = "" },
			refusal.InvalidRequest, "user_pubkey: want a wallet's public key, 32 bytes in base58, received 0 characters"},
		"a user_pubkey with a letter outside base58": {func(r *Registration) { r.UserPubkey = "0" + v.UserPubkey[1:] },
			refusal.InvalidRequest, "user_pubkey: want a wallet's public key, 32 bytes in base58, received 44 characters of other text"},
		"a user_pubkey with a space after it": {func(r *Registration) { r.UserPubkey += " " },
			refusal.InvalidRequest, "received 45 characters"},
		"a user_pubkey of 31 bytes": {func(r *Registration) { r.UserPubkey = pubkey()[1:] },
			refusal.InvalidRequest, "received 31 characters of other text"},
		"a very long user_pubkey": {func(r *Registration) { r.UserPubkey = strings.Repeat("z", 10_000) },
			refusal.InvalidRequest, "received 10000 characters"},
		"a user_pubkey off the curve": {func(r *Registration) { r.UserPubkey = "3LXJBnZqS85UumKKw98SjKZFhtBhExiBXkdEDL1doWWA" },
			refusal.InvalidRequest, "are not the encoding of a point of the curve"},
		"a user_pubkey that is the identity": {func(r *Registration) { r.UserPubkey = pubkey(1) },
			refusal.InvalidRequest, "a point of small order"},
		"a user_pubkey of order four": {func(r *Registration) { r.UserPubkey = pubkey() },
			refusal.InvalidRequest, "a point of small order"},
		"a user_pubkey in a second encoding": {func(r *Registration) { r.UserPubkey = pubkey(nonCanonical...) },
			refusal.InvalidRequest, "are not the encoding of a point of the curve"},
		"no viewing key": {func(r *Registration) { r.ViewingKeyHex = "" },
			refusal.InvalidViewingKey, "viewing_key: want 64 hexadecimal digits (32 bytes), received 0 characters"},
		"a viewing key of 31 bytes": {func(r *Registration) { r.ViewingKeyHex = v.ViewingKey[2:] },
			refusal.InvalidViewingKey, "received 62 characters"},
		"a viewing key with 0x": {func(r *Registration) { r.ViewingKeyHex = "0x" + v.ViewingKey },
			refusal.InvalidViewingKey, "received 66 characters"},
		"a viewing key with a letter that is not a hexadecimal digit": {func(r *Registration) { r.ViewingKeyHex = "g" + v.ViewingKey[1:] },
			refusal.InvalidViewingKey, "received 64 characters that are not all hexadecimal digits"},
		"an empty identifier": {func(r *Registration) { r.Identifier = text("") },
			refusal.InvalidIdentifier, "identifier: want 64 hexadecimal digits (32 bytes) or no identifier at all, received 0 characters"},
		"an identifier without hexadecimal digits": {func(r *Registration) { r.Identifier = text(strings.Repeat("-", 64)) },
			refusal.InvalidIdentifier, "received 64 characters that are not all hexadecimal digits"},
		"no signature": {func(r *Registration) { r.Signature = "" },
			refusal.InvalidSignature, "signature: want 64 bytes in standard base64, base58 or hexadecimal, received 0 characters"},
		"a signature of 63 bytes": {func(r *Registration) { r.Signature = base64.StdEncoding.EncodeToString(make([]byte, 63)) },
			refusal.InvalidSignature, "characters in none of these forms"},
		"a signature of 65 bytes": {func(r *Registration) { r.Signature = v.SignatureHex + "00" },
			refusal.InvalidSignature, "received 130 characters in none of these forms"},
		"a signature in URL-safe base64": {func(r *Registration) {
			r.Signature = strings.NewReplacer("+", "-", "/", "_").Replace(v.SignatureBase64)
		}, refusal.InvalidSignature, "characters in none of these forms"},
		"a signature in base64 with unused bits that are not zero": {func(r *Registration) {
			r.Signature = strings.TrimSuffix(v.SignatureBase64, "A==") + "B=="
		}, refusal.InvalidSignature, "characters in none of these forms"},
		"a very long signature": {func(r *Registration) { r.Signature = strings.Repeat("2", 10_000) },
			refusal.InvalidSignature, "received 10000 characters in none of these forms"},
		"a signature with one bit changed": {func(r *Registration) { r.Signature = "f" + v.SignatureHex[1:] },
			refusal.InvalidSignature, "signature: does not verify for user_pubkey"},
		"another wallet's signature over the message": {func(r *Registration) { r.Signature = signature(stranger, v.message(t)) },
			refusal.InvalidSignature, "signature: does not verify for user_pubkey"},
		"the signature of another wallet's registration": {func(r *Registration) {
			r.UserPubkey = pubkey(stranger.Public().(ed25519.PublicKey)...)
		}, refusal.InvalidSignature, "signature: does not verify for user_pubkey"},
		"a signature over another message": {func(r *Registration) {
			r.UserPubkey = pubkey(stranger.Public().(ed25519.PublicKey)...)
			r.Signature = signature(stranger, v.message(t)+"\n")
		}, refusal.InvalidSignature, "signature: does not verify for user_pubkey"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &memoryStore{}
			s, _ := newTestService(t, store, v.message(t))
			reg := Registration{UserPubkey: v.UserPubkey, ViewingKeyHex: v.ViewingKey, Signature: v.SignatureBase64}
			tt.change(&reg)
			identifier, err := s.Register(t.Context(), reg)
			r, ok := refusal.As(err)
			if !ok || identifier != "" {
				t.Fatalf("identifier %q, error %v; want a refusal", identifier, err)
			}
			if r.Code != tt.wantCode {
				t.Errorf("code %s, want %s", r.Code, tt.wantCode)
			}
			if !strings.Contains(r.Message, tt.wantText) {
				t.Errorf("message %q does not contain %q", r.Message, tt.wantText)
			}
			for what, value := range map[string]string{"viewing key": reg.ViewingKeyHex, "signature": reg.Signature, "wallet": reg.UserPubkey} {
				if value != "" && strings.Contains(r.Error(), value) {
					t.Errorf("the message shows the %s", what)
				}
			}
			if len(store.records) != 0 {
				t.Error("a refused registration was stored")
			}
		})
	}
}

func TestIdentifierConflictKeepsFirstKey(t *testing.T) {
	t.Parallel()
	v := readSignIn(t)
	store := &memoryStore{}
	s, private := newTestService(t, store, v.message(t))
	reg := Registration{UserPubkey: v.UserPubkey, ViewingKeyHex: v.ViewingKey, Signature: v.SignatureBase64, Identifier: &v.Identifier}
	if _, err := s.Register(t.Context(), reg); err != nil {
		t.Fatal(err)
	}
	other := reg
	other.ViewingKeyHex = strings.Repeat("5", 64)
	_, err := s.Register(t.Context(), other)
	if r, ok := refusal.As(err); !ok || r.Code != refusal.IdentifierConflict {
		t.Fatalf("error %v, want %s", err, refusal.IdentifierConflict)
	}
	id, _ := parseHex32(v.Identifier)
	opened, err := Open(private, store.records[id])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(v.ViewingKey, hex.EncodeToString(opened[:])); diff != "" {
		t.Errorf("stored key changed (-want +got):\n%s", diff)
	}
}

func TestRacingRegistrationsHaveOneWinner(t *testing.T) {
	t.Parallel()
	v := readSignIn(t)
	store := &memoryStore{}
	s, private := newTestService(t, store, v.message(t))
	keys := []string{strings.Repeat("1", 64), strings.Repeat("2", 64), strings.Repeat("3", 64), strings.Repeat("4", 64)}
	errs := make([]error, len(keys))
	var wg sync.WaitGroup
	for i, key := range keys {
		wg.Go(func() {
			_, errs[i] = s.Register(context.Background(), Registration{
				UserPubkey: v.UserPubkey, ViewingKeyHex: key, Signature: v.SignatureBase64, Identifier: &v.Identifier,
			})
		})
	}
	wg.Wait()
	winner := -1
	for i, err := range errs {
		if err == nil {
			if winner >= 0 {
				t.Fatal("two registrations with different keys succeeded")
			}
			winner = i
		} else if r, ok := refusal.As(err); !ok || r.Code != refusal.IdentifierConflict {
			t.Errorf("error %v, want %s", err, refusal.IdentifierConflict)
		}
	}
	if winner < 0 {
		t.Fatal("no registration succeeded")
	}
	id, _ := parseHex32(v.Identifier)
	opened, err := Open(private, store.records[id])
	if err != nil {
		t.Fatal(err)
	}
	if hex.EncodeToString(opened[:]) != keys[winner] {
		t.Error("the stored key is not the winner's")
	}
}

func TestRegisterReturnsErrors(t *testing.T) {
	t.Parallel()
	v := readSignIn(t)
	reg := Registration{UserPubkey: v.UserPubkey, ViewingKeyHex: v.ViewingKey, Signature: v.SignatureBase64}

	down := refusal.New(refusal.DatabaseUnavailable, "the database does not answer")
	s, _ := newTestService(t, &memoryStore{err: down}, v.message(t))
	if _, err := s.Register(t.Context(), reg); !errors.Is(err, down) {
		t.Errorf("error is %v, want the error of the store", err)
	}

	store := &memoryStore{}
	s, _ = newTestService(t, store, v.message(t))
	s.random = strings.NewReader("too short")
	if _, err := s.Register(t.Context(), reg); err == nil || len(store.records) != 0 {
		t.Errorf("without randomness: error %v, %d records; want an error and nothing stored", err, len(store.records))
	}
}

func TestNewListsEveryFault(t *testing.T) {
	t.Parallel()
	_, err := New(Options{Messages: []string{""}})
	if err == nil {
		t.Fatal("New returned no error")
	}
	for _, want := range []string{"store is missing", "a sign-in message is empty", "compliance public key: missing", "random source is missing", "clock is missing"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not contain %q", err, want)
		}
	}
	if _, err := New(Options{}); err == nil || !strings.Contains(err.Error(), "want at least one") {
		t.Errorf("error %v does not ask for a message", err)
	}
}
