package admission

import (
	"crypto/sha256"
	"slices"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// KeyHash returns the hash under which a client's idempotency key is stored. With API keys,
// each client has its own keys. Without API keys clients cannot be distinguished, so the key
// is scoped to the content of its request: nobody can use up another client's key.
func KeyHash(key string, client [32]byte, c *shieldpool.Call) []byte {
	if key == "" {
		return nil
	}
	scope := client
	if scope == [32]byte{} {
		scope = submission.ContentHash(c)
	}
	h := sha256.Sum256(slices.Concat([]byte("relaypool/idempotency-key/v2"), scope[:], []byte(key)))
	return h[:]
}
