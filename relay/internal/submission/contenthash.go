package submission

import (
	"crypto/sha256"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// ContentHash identifies the content of a submission: it is the sha256 of public inputs and
// destination. It omits proof and encrypted notes, because another proof of the same inputs
// spends the same notes in the same way.
func ContentHash(c *shieldpool.Call) [32]byte {
	return sha256.Sum256(append(c.Inputs.Bytes(), c.Destination.Bytes()...))
}
