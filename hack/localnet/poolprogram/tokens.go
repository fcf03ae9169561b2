package poolprogram

import (
	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/token"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

// associated finds the token account of a wallet, which costs what the search
// for its address does.
func associated(v *bank.Invocation, wallet, mint solana.PublicKey) (solana.PublicKey, error) {
	at, bump, err := solana.FindAssociatedTokenAddress(wallet, mint)
	if err != nil {
		return at, bank.ErrInvalidSeeds
	}
	return at, v.Consume(addressUnits * (256 - uint64(bump)))
}

// balance returns the tokens in an account. It refuses one that is not a token
// account of the mint, or not of the owner unless that is zero.
func balance(v *bank.Invocation, account *bank.AccountRef, mint, owner solana.PublicKey) (uint64, error) {
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

// closeTokens closes a token account of a swap's state; of wrapped SOL with all
// that is in it.
func closeTokens(v *bank.Invocation, account, to *bank.AccountRef, state derived) error {
	return v.Invoke(token.NewCloseAccountInstruction(account.Key(), to.Key(), state.key, nil).Build(), state.seeds)
}
