package poolprogram

import (
	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// swapWrappedAt is the offset of the first reserved byte of a swap state account.
const swapWrappedAt = 128

type swapState struct {
	*shieldpool.SwapState
	// wrapped says that the lamports are wrapped. It is stored in the first reserved
	// byte. Balances cannot show it: anybody may send lamports to the state, and
	// wrapped SOL to the state's token account.
	wrapped bool
}

func (s *swapState) bytes() []byte {
	b := s.Bytes()
	if s.wrapped {
		b[swapWrappedAt] = 1
	}
	return b
}

// readSwapState reads a swap's state. It returns UninitializedAccount for a swap that was never
// created or has ended. The size distinguishes a swap's state from the program's other accounts.
func readSwapState(v *bank.Invocation, account *bank.AccountRef) (*swapState, error) {
	if account.Owner() != v.ProgramID {
		return nil, v.Refuse(bank.ErrUninitializedAccount, "there is no such swap: it has ended, or was never created")
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
