package viewingkey

import (
	"context"
	"strings"
	"testing"

	"github.com/relaypool/relaypool/relay/refusal"
)

// racingStore is a store that finds no record before an insert, as when another
// registration is inserted between the read and the write.
type racingStore struct{ *memoryStore }

func (racingStore) ViewingKey(context.Context, [32]byte) (*Record, error) { return nil, nil }

// TestOneOfTwoRacingRegistrationsIsRefused: otherwise both clients would believe that
// the officer can open the key that they registered.
func TestOneOfTwoRacingRegistrationsIsRefused(t *testing.T) {
	t.Parallel()
	const message = "Sign in"
	store := &memoryStore{}
	s, _ := newTestService(t, racingStore{store}, message)
	user, signature := newWallet(t, message)
	identifier := strings.Repeat("01", 32)
	register := func(key string) error {
		_, err := s.Register(t.Context(), Registration{UserPubkey: user, ViewingKeyHex: strings.Repeat(key, 32), Signature: signature, Identifier: &identifier})
		return err
	}
	if err := register("aa"); err != nil {
		t.Fatal(err)
	}
	if err := register("aa"); err != nil {
		t.Errorf("repeating the registration is refused: %v", err)
	}
	if r, ok := refusal.As(register("bb")); !ok || r.Code != refusal.IdentifierConflict {
		t.Errorf("another key under the same identifier is answered %v, want %s", r, refusal.IdentifierConflict)
	}
	if len(store.records) != 1 {
		t.Errorf("%d keys are stored, want 1", len(store.records))
	}
}
