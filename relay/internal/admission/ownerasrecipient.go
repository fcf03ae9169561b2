package admission

import "github.com/relaypool/relaypool/relay/shieldpool"

// useOwnerAsRecipient makes the token account's owner the call's recipient, under the same rules
// as for a recipient that the request names.
func (a *Admission) useOwnerAsRecipient(account *shieldpool.TokenAccount, c *shieldpool.Call) error {
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
