package admission

import (
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// ownsATA reports whether the token account that the swap pays is the wallet's associated one.
func ownsATA(wallet solana.PublicKey, terms *shieldpool.SwapTerms) (bool, error) {
	ata, err := shieldpool.AssociatedTokenAccount(wallet, terms.OutputMint)
	return ata.Equals(terms.RecipientATA), err
}

// tokenAccount parses a token account of the mint; nil when there is none. An account of the
// system program counts as none, because anybody can transfer lamports to the address.
func tokenAccount(a *onchain.Account, mint solana.PublicKey) (*shieldpool.TokenAccount, error) {
	switch {
	case a == nil || a.Owner.Equals(solana.SystemProgramID):
		return nil, nil //nolint:nilnil // nil is "there is none", as documented
	case !a.Owner.Equals(solana.TokenProgramID):
		return nil, invalidSwap("recipient_ata belongs to another program than SPL Token: expected the recipient's associated token account for output_mint")
	}
	account, err := shieldpool.ParseTokenAccount(a.Data)
	switch {
	case err != nil:
		return nil, invalidSwap("recipient_ata is an account of the SPL Token program, but no token account: expected the recipient's associated token account for output_mint").Because(err)
	case !account.Mint.Equals(mint):
		return nil, invalidSwap("recipient_ata holds tokens of another mint than output_mint: expected the recipient's associated token account for output_mint")
	}
	return account, nil
}
