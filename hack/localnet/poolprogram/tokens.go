package poolprogram

import (
	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/token"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

// associatedTokenAccount finds the associated token account of a wallet. It consumes the compute
// units of the search for the address.
func associatedTokenAccount(v *bank.Invocation, wallet, mint solana.PublicKey) (solana.PublicKey, error) {
	address, bump, err := solana.FindAssociatedTokenAddress(wallet, mint)
	if err != nil {
		return address, bank.ErrInvalidSeeds
	}
	return address, v.Consume(addressUnits * (256 - uint64(bump)))
}

// tokenBalance returns the balance of a token account. It returns an error when the account is not a
// token account of the mint, or has another owner. A zero owner matches any owner.
func tokenBalance(v *bank.Invocation, account *bank.AccountRef, mint, owner solana.PublicKey) (uint64, error) {
	if account.Owner() != solana.TokenProgramID {
		return 0, v.Refuse(bank.ErrInvalidAccountOwner, "a token account does not exist, or is not of the token program")
	}
	held := bank.ParseToken(account.Data())
	switch {
	case held == nil || held.State == token.Uninitialized:
		return 0, v.Refuse(bank.ErrInvalidAccountData, "an account of the token program is not a token account")
	case held.Mint != mint:
		return 0, v.Refuse(bank.ErrInvalidAccountData, "a token account is of another mint")
	case !owner.IsZero() && held.Owner != owner:
		return 0, v.Refuse(bank.ErrInvalidAccountData, "a token account has another owner")
	}
	return held.Amount, nil
}

// closeTokens closes a token account of a swap's state and moves the account's
// lamports to the account to. For wrapped SOL they include the balance.
func closeTokens(v *bank.Invocation, account, to *bank.AccountRef, state programAddress) error {
	return v.Invoke(token.NewCloseAccountInstruction(account.Key(), to.Key(), state.key, nil).Build(), state.seeds)
}
