package pool

import (
	"slices"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/keys"
)

// payers returns the addresses whose balances are to be read: the payers that the status
// shows, and every generated key. The status shows an unused key depending on its balance.
// If only shown payers were read, such a key would be shown and hidden alternately.
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
