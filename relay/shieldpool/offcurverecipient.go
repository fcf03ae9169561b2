package shieldpool

import (
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/refusal"
)

// checkOnCurve refuses a recipient without a private key, such as the vault of a multisig, unless
// the profile allows it.
func checkOnCurve(p *Profile, recipient solana.PublicKey) error {
	if !p.AllowOffCurveRecipient && !recipient.IsOnCurve() {
		return refusal.New(refusal.InvalidRecipient,
			"recipient is off the ed25519 curve, so no wallet can sign for it: expected a wallet address, not a program's or token account's")
	}
	return nil
}
