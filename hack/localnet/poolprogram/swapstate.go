package poolprogram

import (
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// swapWrappedAt is the first reserved byte of a swap state account.
const swapWrappedAt = 128

// swapState is the data of a swap state account.
type swapState struct {
	*shieldpool.SwapState
	// wrapped is in the first reserved byte. Balances do not show it: anybody may
	// send lamports to the state, and wrapped SOL to its account.
	wrapped bool
}

func (s *swapState) bytes() []byte {
	b := s.Bytes()
	if s.wrapped {
		b[swapWrappedAt] = 1
	}
	return b
}

// readSwapState returns UninitializedAccount without such a swap: it was never
// made, or it has ended. No other kind of the program's accounts has the size
// of a state.
func readSwapState(v *bank.Invocation, account *bank.AccountRef) (*swapState, error) {
	if account.Owner() != v.ProgramID {
		return nil, v.Refuse(bank.ErrUninitializedAccount, "there is no such swap: it is settled, or was never made")
	}
	if account.Length() != shieldpool.SwapStateLength {
		return nil, v.Refuse(bank.ErrInvalidAccountData, "the account is no swap's state")
	}
	state, err := shieldpool.ParseSwapState(account.Data())
	if err != nil {
		return nil, bank.ErrInvalidAccountData
	}
	return &swapState{state, account.Data()[swapWrappedAt] == 1}, nil
}

// closeAccount moves all lamports of a program account to another. Nothing of
// it is left, even for the rest of the transaction.
func closeAccount(account, to *bank.AccountRef) error {
	lamports := account.Lamports()
	if err := account.SubLamports(lamports); err != nil {
		return err
	}
	if err := to.AddLamports(lamports); err != nil {
		return err
	}
	if err := account.SetData(nil); err != nil {
		return err
	}
	return account.SetOwner(solana.SystemProgramID)
}
