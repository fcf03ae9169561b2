package admission

import (
	"context"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// A swap's lamports leave the pool before it is known whether they can be swapped. So every
// request whose second leg could neither be executed nor refunded is refused before the first
// leg is signed.

// swapDestination returns the destination of a swap, after all checks that need only the request.
// The recipient is zero when the request names none; checkSwapAccounts then reads it from the
// chain.
func (a *Admission) swapDestination(r submission.Request, in *shieldpool.PublicInputs) (d shieldpool.Destination, err error) {
	if !in.HasNullifier(0) {
		return d, invalidSwap("nullifier 0 is zero, and the swap's account on the chain is named by it, so every such swap would share one: expected a note's nullifier there; a missing input goes second")
	}
	if mint, _ := a.Pool.Profile.MintByField(in.MintAddress); !mint.Address.Equals(solana.WrappedSol) {
		return d, invalidSwap("mintAddress stands for another mint than wrapped SOL: swaps start from SOL alone")
	}
	terms := &shieldpool.SwapTerms{MinOutput: r.Swap.MinOutput}
	if terms.OutputMint, err = swapAddress("output_mint", r.Swap.OutputMint); err != nil {
		return d, err
	}
	if terms.RecipientATA, err = swapAddress("recipient_ata", r.Swap.RecipientATA); err != nil {
		return d, err
	}
	if err := refuseWrappedSOL(terms.OutputMint); err != nil {
		return d, err
	}
	if terms.MinOutput == 0 {
		return d, invalidSwap("min_output_amount is zero, so that any price would do: expected 1 or more of the output mint's smallest unit")
	}
	d.Swap = terms
	if r.Recipient == "" {
		return d, nil
	}
	if d.Recipient, err = a.parseRecipient(r.Recipient, in); err != nil {
		return d, err
	}
	owns, err := ownsATA(d.Recipient, terms)
	switch {
	case err != nil:
		return d, err
	case !owns:
		return d, invalidSwap("recipient_ata is not the recipient's associated token account for output_mint: expected the address that recipient, the SPL Token program and output_mint derive")
	}
	return d, a.refuseSwapAccounts(d.Recipient, terms, in)
}

// swapAddress decodes an address. The error contains the text's length, not its value.
func swapAddress(name, text string) (solana.PublicKey, error) {
	key, err := solana.PublicKeyFromBase58(text)
	if err != nil {
		return key, invalidSwap("%s is not an address: expected 32 bytes in base58, received %d characters that are not", name, len(text))
	}
	return key, nil
}

// refuseSwapAccounts refuses a wallet that is one of the accounts or programs of the swap itself.
// The swap's own accounts are off the curve, so without this check they could be recipients
// under a profile that allows recipients off the curve.
func (a *Admission) refuseSwapAccounts(wallet solana.PublicKey, terms *shieldpool.SwapTerms, in *shieldpool.PublicInputs) error {
	swap, err := a.Pool.Swap(in.Nullifiers[0], *terms)
	if err != nil {
		return err
	}
	for _, swapAccount := range []solana.PublicKey{swap.State, swap.WSOL, swap.Output, terms.RecipientATA, terms.OutputMint, solana.TokenProgramID, solana.SPLAssociatedTokenAccountProgramID} {
		if wallet.Equals(swapAccount) {
			return refusal.New(refusal.InvalidRecipient, "recipient is an account or program of the swap itself: expected a wallet of the client's own")
		}
	}
	return nil
}

// checkSwapAccounts checks on the chain whether the output can be paid out. If the request
// names no recipient, the owner of the existing token account becomes the recipient.
func (a *Admission) checkSwapAccounts(ctx context.Context, c *shieldpool.Call) error {
	seen, err := a.State.Tokens(ctx, c.Swap.OutputMint, c.Swap.RecipientATA)
	if err != nil {
		return err
	}
	if err := checkMint(seen.Mint); err != nil {
		return err
	}
	account, err := tokenAccount(seen.Account, c.Swap.OutputMint)
	if err != nil {
		return err
	}
	if c.Recipient.IsZero() {
		if err := a.useOwnerAsRecipient(account, c); err != nil {
			return err
		}
	}
	switch {
	case account == nil:
		return nil
	case !account.Owner.Equals(c.Recipient):
		return invalidSwap("recipient_ata exists and belongs to another owner than the recipient: expected a token account that the recipient owns")
	}
	if account.Frozen {
		return invalidSwap("recipient_ata is frozen by the authority of its mint, so nothing can be paid into it: choose another token or another recipient")
	}
	return nil
}

func invalidSwap(format string, args ...any) *refusal.Refusal {
	return refusal.New(refusal.InvalidSwap, format, args...)
}
