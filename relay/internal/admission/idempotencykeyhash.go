package admission

import (
	"crypto/sha256"
	"slices"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// KeyHash returns the hash under which a client's idempotency key is stored. With API keys, the
// hash also depends on the client. Without API keys clients cannot be distinguished, so the hash
// depends on the content of the request instead. Nobody can thus use up another client's
// idempotency key.
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
