package admission

import (
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// refuseWrappedSOL refuses wrapped SOL as the output of a swap.
func refuseWrappedSOL(outputMint solana.PublicKey) error {
	if outputMint.Equals(solana.WrappedSol) {
		return invalidSwap("output_mint is wrapped SOL, which is what a swap starts from: expected another mint; withdraw SOL with POST /transact or POST /withdraw")
	}
	return nil
}

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
