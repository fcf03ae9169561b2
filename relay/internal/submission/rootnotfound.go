package submission

import (
	"fmt"

	"github.com/relaypool/relaypool/relay/refusal"
)

// StaleRoot returns the refusal for a stale root. Clients search its message for the word
// RootNotFound, and read current_root.
func StaleRoot(root, current [32]byte) *refusal.Refusal {
	return refusal.New(refusal.RootNotFound,
		"RootNotFound (stale Merkle root): proof root %.8x not in root history (current root %.8x)", root[:], current[:]).
		With("current_root", fmt.Sprintf("%x", current))
}
