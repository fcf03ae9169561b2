package admission

import (
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// checkMint refuses an account that is not an initialised mint of the SPL Token program.
func checkMint(a *onchain.Account) error {
	switch {
	case a == nil:
		return invalidSwap("output_mint does not exist on the chain: expected the address of a mint of the SPL Token program")
	case a.Owner.Equals(solana.Token2022ProgramID):
		return invalidSwap("output_mint belongs to the Token-2022 program: expected a mint of the SPL Token program, the only one that swaps pay out; choose another token")
	case !a.Owner.Equals(solana.TokenProgramID):
		return invalidSwap("output_mint is not a mint: its account does not belong to the SPL Token program; expected the address of a mint")
	}
	if err := shieldpool.CheckTokenMint(a.Data); err != nil {
		return invalidSwap("output_mint is an account of the SPL Token program, but no initialised mint: expected the address of a mint, not of a token account").Because(err)
	}
	return nil
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
