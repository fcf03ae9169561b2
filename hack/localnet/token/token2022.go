package token

import (
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/token/layout"
)

// Program2022 is Token-2022, which exists here so that its mints can be told
// from others: every instruction fails with UnsupportedProgramId.
func Program2022() bank.Program {
	return bank.Program{
		ID: solana.Token2022ProgramID, Account: bank.ProgramAccount(),
		Process: func(v *bank.Invocation) error {
			v.Log("Program log: Error: Token-2022 is not part of this chain")
			return bank.ErrUnsupportedProgramID
		},
	}
}

// MintAccount2022 is the account of a mint of Token-2022 without extensions,
// to be put on the chain at genesis.
func MintAccount2022(mint layout.Mint) bank.Account {
	account := MintAccount(mint)
	account.Owner = solana.Token2022ProgramID
	return account
}
