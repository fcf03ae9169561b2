package pool

import (
	"slices"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/keys"
)

// payers returns the addresses whose balances are to be read: the payers that the status
// shows, and every generated key. The status hides an unused key whose balance is known to
// be too small to move. If only shown payers were read, the balance of a hidden key would
// become unknown, and the status would show the key again.
func payers(shown []v1alpha1.FeePayerStatus, generated []keys.Key) []solana.PublicKey {
	var out []solana.PublicKey
	add := func(text string) {
		if address, err := solana.PublicKeyFromBase58(text); err == nil && !slices.Contains(out, address) {
			out = append(out, address)
		}
	}
	for i := range shown {
		add(shown[i].Address)
	}
	for i := range generated {
		add(generated[i].Address)
	}
	return out
}
