// Package viewingkey registers viewing keys: it checks that the wallet signed the
// request, seals the key so that only the compliance officer can read it, and
// stores it under an identifier. It also has the officer's offline side: making
// the key pair and opening exported records.
//
// The relay stores only the Record of a registration, which reveals neither the
// wallet nor the viewing key.
package viewingkey

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/relaypool/relaypool/relay/refusal"
)

// Registration is what a client asks for, as text from its request.
type Registration struct {
	// UserPubkey is the wallet's ed25519 public key in base58.
	UserPubkey string
	// ViewingKeyHex is the viewing key, 32 bytes in hexadecimal of either case.
	ViewingKeyHex string
	// Signature is the wallet's ed25519 signature over a sign-in message, 64
	// bytes in standard base64, base58 or hexadecimal.
	Signature string
	// Identifier is 32 bytes in hexadecimal; nil for the default,
	// sha256(UserPubkey ‖ lower-case ViewingKeyHex).
	Identifier *string
	// Address is the client's address, for the limit on new keys; it is not stored.
	Address string
}

// Store keeps records. Implementations are safe for concurrent use.
type Store interface {
	// PutViewingKey inserts the record, or returns the record that is already stored
	// under its identifier. If several calls race with one identifier, exactly one of
	// them inserts its record.
	PutViewingKey(ctx context.Context, r Record) (existing *Record, err error)
	// ViewingKey returns the record of an identifier; nil when there is none.
	ViewingKey(ctx context.Context, identifier [32]byte) (*Record, error)
}

// Options are the parts of a Service; all are required.
type Options struct {
	Store Store
	// Messages are the sign-in messages; a signature over any of them is accepted.
	Messages []string
	// CompliancePublicKey is the officer's X25519 key that viewing keys are sealed to.
	CompliancePublicKey [32]byte
	// Random is the source of the sealed boxes' ephemeral keys; crypto/rand.Reader
	// outside tests. Safe for concurrent use.
	Random io.Reader
	// Now is the clock of the hourly limits on new keys.
	Now func() time.Time
}

// Service registers viewing keys. It is safe for concurrent use.
type Service struct {
	store     Store
	messages  []string
	publicKey [32]byte
	keyID     string
	random    io.Reader
	now       func() time.Time
	newKeys   newKeyLimit
}

// New checks the options and makes the service. Its error lists every fault.
func New(o Options) (*Service, error) {
	var faults []error
	if o.Store == nil {
		faults = append(faults, errors.New("store is missing"))
	}
	if len(o.Messages) == 0 {
		faults = append(faults, errors.New("sign-in messages are missing: want at least one"))
	}
	if slices.Contains(o.Messages, "") {
		faults = append(faults, errors.New("a sign-in message is empty"))
	}
	if err := checkPublicKey(o.CompliancePublicKey); err != nil {
		faults = append(faults, err)
	}
	if o.Random == nil {
		faults = append(faults, errors.New("random source is missing"))
	}
	if o.Now == nil {
		faults = append(faults, errors.New("clock is missing"))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("viewing keys: %w", err)
	}
	return &Service{
		store:     o.Store,
		messages:  slices.Clone(o.Messages),
		publicKey: o.CompliancePublicKey,
		keyID:     KeyID(o.CompliancePublicKey),
		random:    o.Random,
		now:       o.Now,
	}, nil
}

// Register checks the registration, stores it sealed, and returns its identifier in lower-case
// hexadecimal. Repeating a registration succeeds and changes nothing; another key under the same
// identifier is refused with identifier_conflict and overwrites nothing. The error for an invalid
// registration is a *refusal.Refusal; other errors come from the store or the random source.
func (s *Service) Register(ctx context.Context, reg Registration) (identifier string, err error) {
	wallet, err := parseWallet(reg.UserPubkey)
	if err != nil {
		return "", err
	}
	key, fault := parseHex32(reg.ViewingKeyHex)
	if fault != "" {
		return "", refusal.New(refusal.InvalidViewingKey, "viewing_key: want 64 hexadecimal digits (32 bytes), received %s", fault)
	}
	id := defaultIdentifier(reg.UserPubkey, key)
	if reg.Identifier != nil {
		if id, fault = parseHex32(*reg.Identifier); fault != "" {
			return "", refusal.New(refusal.InvalidIdentifier, "identifier: want 64 hexadecimal digits (32 bytes) or no identifier at all, received %s", fault)
		}
	}
	if err := s.checkSignature(wallet, reg.Signature); err != nil {
		return "", err
	}
	if err := s.put(ctx, [32]byte(wallet), reg.Address, id, key); err != nil {
		return "", err
	}
	return hex.EncodeToString(id[:]), nil
}

// parseHex32 decodes 64 hexadecimal digits. fault describes an invalid text by its
// length or kind, and is empty for a valid one.
func parseHex32(text string) (b [32]byte, fault string) {
	if len(text) != hex.EncodedLen(len(b)) {
		return b, fmt.Sprintf("%d characters", len(text))
	}
	if _, err := hex.Decode(b[:], []byte(text)); err != nil {
		return [32]byte{}, "64 characters that are not all hexadecimal digits"
	}
	return b, ""
}
