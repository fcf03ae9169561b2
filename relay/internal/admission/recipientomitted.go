package admission

import (
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// useOwnerAsRecipient makes the token account's owner the recipient of a swap whose request names
// none, under the same rules as for a recipient that the request names. It refuses the request if
// the account does not exist.
func (a *Admission) useOwnerAsRecipient(account *shieldpool.TokenAccount, c *shieldpool.Call) error {
	if account == nil {
		return refusal.New(refusal.RecipientRequired, "recipient is missing, and recipient_ata does not exist yet, so the relay cannot determine its owner: expected the base58 address of the wallet that is to own it")
	}
	owns, err := ownsATA(account.Owner, c.Swap)
	switch {
	case err != nil:
		return err
	case !owns:
		return invalidSwap("recipient_ata is not the associated token account of its owner for output_mint: expected the address that the owner, the SPL Token program and output_mint derive")
	}
	if err := a.checkRecipient(account.Owner, c.Inputs); err != nil {
		return err
	}
	if err := a.refuseSwapAccounts(account.Owner, c.Swap, c.Inputs); err != nil {
		return err
	}
	c.Recipient = account.Owner
	return nil
}
