package viewingkey

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"golang.org/x/crypto/nacl/box"
)

// fingerprintDomain separates fingerprints from other hashes of the same bytes.
const fingerprintDomain = "relaypool/viewing-key/v1"

// Record is a registration as it is stored.
type Record struct {
	Identifier [32]byte
	// Sealed is the viewing key in an anonymous X25519 box, SealedSize bytes.
	Sealed []byte
	// Fingerprint is sha256("relaypool/viewing-key/v1" ‖ identifier ‖ viewing
	// key). It shows whether two registrations under one identifier have the same key. The
	// boxes do not show this, because two boxes of one key differ.
	Fingerprint [32]byte
	// KeyID names the compliance key that Sealed was made for.
	KeyID string
}

// SealedSize is the length of a sealed viewing key in bytes.
const SealedSize = 32 + box.AnonymousOverhead

// put stores the key unless its identifier is already registered. A new key counts
// against the hourly limits.
func (s *Service) put(ctx context.Context, wallet [32]byte, address string, id, key [32]byte) error {
	existing, err := s.store.ViewingKey(ctx, id)
	if err != nil {
		return fmt.Errorf("read viewing key: %w", err)
	}
	if existing != nil {
		return checkSame(existing, fingerprint(id, key))
	}
	sealed, err := box.SealAnonymous(nil, key[:], &s.publicKey, s.random)
	if err != nil {
		return fmt.Errorf("seal viewing key: %w", err)
	}
	release, err := s.newKeys.acquire(wallet, address, s.now())
	if err != nil {
		return err
	}
	record := Record{Identifier: id, Sealed: sealed, Fingerprint: fingerprint(id, key), KeyID: s.keyID}
	existing, err = s.store.PutViewingKey(ctx, record)
	// The insert of a cancelled request may have succeeded. Its key therefore stays counted, so
	// that cancelled requests cannot bypass the limit.
	if existing != nil || err != nil && ctx.Err() == nil {
		release()
	}
	if err != nil {
		return fmt.Errorf("store viewing key: %w", err)
	}
	if existing != nil {
		return checkSame(existing, record.Fingerprint)
	}
	return nil
}

func fingerprint(id, key [32]byte) [32]byte {
	return sha256.Sum256(slices.Concat([]byte(fingerprintDomain), id[:], key[:]))
}
