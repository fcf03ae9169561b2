package viewingkey

import (
	"crypto/sha256"
	"encoding/hex"
)

// defaultIdentifier hashes the texts, not the decoded bytes, because clients do so too.
func defaultIdentifier(userPubkey string, key [32]byte) [32]byte {
	return sha256.Sum256([]byte(userPubkey + hex.EncodeToString(key[:])))
}
