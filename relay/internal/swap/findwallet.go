package swap

import (
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// findWallet finds the wallet that owns the token account named in the terms: the
// submission's recipient, or the owner that tokenAccount names if the account exists.
func (s *Planner) findWallet(r *snapshot, tokenAccount *onchain.Account) (solana.PublicKey, error) {
	candidates := []solana.PublicKey{r.submission.Call.Recipient}
	if tokenAccount != nil && tokenAccount.Owner.Equals(solana.TokenProgramID) {
		if t, err := shieldpool.ParseTokenAccount(tokenAccount.Data); err == nil {
			candidates = append(candidates, t.Owner)
		}
	}
	for _, wallet := range candidates {
		if wallet.IsZero() {
			continue
		}
		ata, err := shieldpool.AssociatedTokenAccount(wallet, r.terms.OutputMint)
		if err != nil {
			return wallet, err
		}
		if ata.Equals(r.terms.RecipientATA) {
			r.wallet, r.walletKnown = wallet, true
			return wallet, nil
		}
	}
	return solana.PublicKey{}, nil
}
