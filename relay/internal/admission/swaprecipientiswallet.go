package admission

import (
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// checkRefundWallet checks that the recipient of a swap is a wallet, because a refund pays it.
func checkRefundWallet(c *shieldpool.Call, seen *onchain.Inspection) error {
	if c.Swap != nil && seen.RecipientExists && !seen.RecipientOwner.Equals(solana.SystemProgramID) {
		return refusal.New(refusal.InvalidRecipient,
			"the recipient's account belongs to a program other than the system program, so it is no wallet and a refund might be lost in it: expected a wallet's own address")
	}
	return nil
}
