package viewingkey

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"

	"github.com/relaypool/relaypool/relay/refusal"
)

// defaultIdentifier hashes the texts, not the decoded bytes, because clients do so too.
func defaultIdentifier(userPubkey string, key [32]byte) [32]byte {
	return sha256.Sum256([]byte(userPubkey + hex.EncodeToString(key[:])))
}

// checkSame refuses a key that differs from the one stored under the identifier.
func checkSame(existing *Record, fingerprint [32]byte) error {
	if subtle.ConstantTimeCompare(existing.Fingerprint[:], fingerprint[:]) == 0 {
		return refusal.New(refusal.IdentifierConflict, "identifier: already registered with another viewing key, which was kept; register with another identifier, or leave it out")
	}
	return nil
}
