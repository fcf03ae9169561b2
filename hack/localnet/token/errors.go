package token

import "github.com/relaypool/relaypool/hack/localnet/bank"

// The errors of SPL Token, with the codes of the real program.
const (
	ErrNotRentExempt             bank.CustomError = 0
	ErrInsufficientFunds         bank.CustomError = 1
	ErrInvalidMint               bank.CustomError = 2
	ErrMintMismatch              bank.CustomError = 3
	ErrOwnerMismatch             bank.CustomError = 4
	ErrFixedSupply               bank.CustomError = 5
	ErrAlreadyInUse              bank.CustomError = 6
	ErrNativeNotSupported        bank.CustomError = 10
	ErrNonNativeHasBalance       bank.CustomError = 11
	ErrInvalidInstruction        bank.CustomError = 12
	ErrInvalidState              bank.CustomError = 13
	ErrOverflow                  bank.CustomError = 14
	ErrAuthorityTypeNotSupported bank.CustomError = 15
	ErrMintCannotFreeze          bank.CustomError = 16
	ErrAccountFrozen             bank.CustomError = 17
	ErrNonNativeNotSupported     bank.CustomError = 19
)

func errorText(code bank.CustomError) string {
	return [...]string{
		ErrNotRentExempt:             "Lamport balance below rent-exempt threshold",
		ErrInsufficientFunds:         "insufficient funds",
		ErrInvalidMint:               "Invalid Mint",
		ErrMintMismatch:              "Account not associated with this Mint",
		ErrOwnerMismatch:             "owner does not match",
		ErrFixedSupply:               "the total supply of this token is fixed",
		ErrAlreadyInUse:              "account or token already in use",
		ErrNativeNotSupported:        "Instruction does not support native tokens",
		ErrNonNativeHasBalance:       "Non-native account can only be closed if its balance is zero",
		ErrInvalidInstruction:        "Invalid instruction",
		ErrInvalidState:              "Invalid account state for operation",
		ErrOverflow:                  "Operation overflowed",
		ErrAuthorityTypeNotSupported: "Account does not support specified authority type",
		ErrMintCannotFreeze:          "This token mint cannot freeze accounts",
		ErrAccountFrozen:             "Account is frozen",
		ErrNonNativeNotSupported:     "Instruction does not support non-native tokens",
	}[code]
}
