package admission

import (
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// checkRecipientAccount checks the recipient's account, as it was read from the chain. The refund
// of a swap needs a wallet, and after a withdrawal the account must have the minimum for rent. If
// the account already has lamports, the network requires no further lamports (SIMD-0392), so only
// the program's minimum applies.
func (a *Admission) checkRecipientAccount(c *shieldpool.Call, seen *onchain.Inspection) error {
	if c.Swap != nil && seen.RecipientExists && !seen.RecipientOwner.Equals(solana.SystemProgramID) {
		return refusal.New(refusal.InvalidRecipient,
			"the recipient's account belongs to a program other than the system program, so it is no wallet and a refund might be lost in it: expected a wallet's own address")
	}
	if c.Kind() != shieldpool.KindWithdrawal {
		return nil // a swap's refund also pays the recipient the rent of the swap state, which is above the minimum
	}
	net, _ := a.Pool.Profile.Fees.Net(c.Inputs.Gross())
	least := a.Submissions.RecipientMinimum()
	if seen.RecipientLamports > 0 {
		least = a.Pool.Profile.RecipientMinimum
	}
	if net < least && seen.RecipientLamports < least-net {
		return submission.RecipientBelowRent(least)
	}
	return nil
}

func (a *Admission) parseRecipient(text string, in *shieldpool.PublicInputs) (solana.PublicKey, error) {
	if text == "" {
		return solana.PublicKey{}, refusal.New(refusal.RecipientRequired, "recipient is missing: a withdrawal (publicAmount below zero) needs the base58 address of the wallet to pay")
	}
	key, err := solana.PublicKeyFromBase58(text)
	if err != nil {
		return key, refusal.New(refusal.InvalidRecipient, "recipient is not an address: expected 32 bytes in base58, received %d characters that are not", len(text))
	}
	return key, a.checkRecipient(key, in)
}

func (a *Admission) checkRecipient(key solana.PublicKey, in *shieldpool.PublicInputs) error {
	for _, payer := range a.Payers.Keys() {
		if err := a.Pool.CheckRecipient(payer, key, in); err != nil {
			return err
		}
	}
	return nil
}

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
