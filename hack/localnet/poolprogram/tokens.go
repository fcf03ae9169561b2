package poolprogram

import (
	"encoding/binary"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/token"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

// Layout of the SPL Token program's accounts, as far as the program looks.
const (
	tokenAccountSize = 165
	tokenOwnerAt     = 32
	tokenAmountAt    = 64
	tokenStateAt     = 108
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

// balance gives the tokens that an account holds. It refuses what is no token
// account of that mint; and of that owner, unless the owner is zero.
func balance(v *bank.Invocation, account *bank.AccountRef, mint, owner solana.PublicKey) (uint64, error) {
	if account.Owner() != solana.TokenProgramID {
		return 0, refuse(v, bank.ErrInvalidAccountOwner, "a token account does not exist, or is not of the token program")
	}
	data := account.Data()
	if len(data) != tokenAccountSize || data[tokenStateAt] == 0 {
		return 0, refuse(v, bank.ErrInvalidAccountData, "an account of the token program holds no tokens")
	}
	if solana.PublicKeyFromBytes(data[:tokenOwnerAt]) != mint {
		return 0, refuse(v, bank.ErrInvalidAccountData, "a token account is of another mint")
	}
	if !owner.IsZero() && solana.PublicKeyFromBytes(data[tokenOwnerAt:tokenAmountAt]) != owner {
		return 0, refuse(v, bank.ErrInvalidAccountData, "a token account has another owner")
	}
	return binary.LittleEndian.Uint64(data[tokenAmountAt:]), nil
}

// closeTokens closes a token account of a swap's state; of wrapped SOL with all
// that is in it.
func closeTokens(v *bank.Invocation, account, to *bank.AccountRef, state derived) error {
	return v.Invoke(token.NewCloseAccountInstruction(account.Key(), to.Key(), state.key, nil).Build(), state.seeds)
}
