package bank

import (
	"encoding/json"
	"errors"
	"fmt"
)

// InstructionError is why one instruction failed: a variant of Agave's InstructionError
// enum. It is marshalled as its name. Its text is Agave's Display, which appears in logs and
// in the message of a preflight failure, which clients match on.
type InstructionError struct{ name, text string }

// The instruction errors that the bank and its programs return.
var (
	ErrGenericError                = InstructionError{"GenericError", "generic instruction error"}
	ErrInvalidArgument             = InstructionError{"InvalidArgument", "invalid program argument"}
	ErrInvalidInstructionData      = InstructionError{"InvalidInstructionData", "invalid instruction data"}
	ErrInvalidAccountData          = InstructionError{"InvalidAccountData", "invalid account data for instruction"}
	ErrMissingRequiredSignature    = InstructionError{"MissingRequiredSignature", "missing required signature for instruction"}
	ErrAccountAlreadyInitialized   = InstructionError{"AccountAlreadyInitialized", "instruction requires an uninitialized account"}
	ErrUninitializedAccount        = InstructionError{"UninitializedAccount", "instruction requires an initialized account"}
	ErrUnbalancedInstruction       = InstructionError{"UnbalancedInstruction", "sum of account balances before and after instruction do not match"}
	ErrModifiedProgramID           = InstructionError{"ModifiedProgramId", "instruction illegally modified the program id of an account"}
	ErrExternalAccountLamportSpend = InstructionError{"ExternalAccountLamportSpend", "instruction spent from the balance of an account it does not own"}
	ErrExternalAccountDataModified = InstructionError{"ExternalAccountDataModified", "instruction modified data of an account it does not own"}
	ErrReadonlyLamportChange       = InstructionError{"ReadonlyLamportChange", "instruction changed the balance of a read-only account"}
	ErrReadonlyDataModified        = InstructionError{"ReadonlyDataModified", "instruction modified data of a read-only account"}
	ErrNotEnoughAccountKeys        = InstructionError{"NotEnoughAccountKeys", "insufficient account keys for instruction"}
	ErrAccountDataSizeChanged      = InstructionError{"AccountDataSizeChanged", "program other than the account's owner changed the size of the account data"}
	ErrUnsupportedProgramID        = InstructionError{"UnsupportedProgramId", "Unsupported program id"}
	ErrCallDepth                   = InstructionError{"CallDepth", "Cross-program invocation call depth too deep"}
	ErrMissingAccount              = InstructionError{"MissingAccount", "An account required by the instruction is missing"}
	ErrInvalidSeeds                = InstructionError{"InvalidSeeds", "Provided seeds do not result in a valid address"}
	ErrInvalidRealloc              = InstructionError{"InvalidRealloc", "Failed to reallocate account data"}
	ErrComputationalBudgetExceeded = InstructionError{"ComputationalBudgetExceeded", "Computational budget exceeded"}
	ErrPrivilegeEscalation         = InstructionError{"PrivilegeEscalation", "Cross-program invocation with unauthorized signer or writable account"}
	ErrIncorrectProgramID          = InstructionError{"IncorrectProgramId", "incorrect program id for instruction"}
	ErrInvalidAccountOwner         = InstructionError{"InvalidAccountOwner", "Invalid account owner"}
	ErrArithmeticOverflow          = InstructionError{"ArithmeticOverflow", "Program arithmetic overflowed"}
	ErrIllegalOwner                = InstructionError{"IllegalOwner", "Provided owner is not allowed"}
	ErrReentrancyNotAllowed        = InstructionError{"ReentrancyNotAllowed", "Cross-program invocation reentrancy not allowed for this instruction"}
)

// Error returns Agave's text for the error.
func (e InstructionError) Error() string { return e.text }

// MarshalText writes Agave's name for the error.
func (e InstructionError) MarshalText() ([]byte, error) { return []byte(e.name), nil }

// CustomError is a program's own error code. It is marshalled as
// {"Custom": code}.
type CustomError uint32

// Error returns Agave's text for the error, with the code in hex.
func (e CustomError) Error() string {
	return fmt.Sprintf("custom program error: 0x%x", uint32(e))
}

// MarshalJSON writes Agave's form of the error.
func (e CustomError) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]uint32{"Custom": uint32(e)})
}

// TransactionErrorKind is one variant of Agave's TransactionError enum. Its text is Agave's
// Display, empty for a kind that carries an index.
type TransactionErrorKind struct{ name, text string }

// The transaction errors of the bank.
var (
	AccountLoadedTwice                = TransactionErrorKind{"AccountLoadedTwice", "Account loaded twice"}
	MaxLoadedAccountsDataSizeExceeded = TransactionErrorKind{"MaxLoadedAccountsDataSizeExceeded", "Transaction exceeded max loaded accounts data size cap"}
	AccountNotFound                   = TransactionErrorKind{"AccountNotFound", "Attempt to debit an account but found no record of a prior credit."}
	ProgramAccountNotFound            = TransactionErrorKind{"ProgramAccountNotFound", "Attempt to load a program that does not exist"}
	InsufficientFundsForFee           = TransactionErrorKind{"InsufficientFundsForFee", "Insufficient funds for fee"}
	InvalidAccountForFee              = TransactionErrorKind{"InvalidAccountForFee", "This account may not be used to pay transaction fees"}
	AlreadyProcessed                  = TransactionErrorKind{"AlreadyProcessed", "This transaction has already been processed"}
	BlockhashNotFound                 = TransactionErrorKind{"BlockhashNotFound", "Blockhash not found"}
	InstructionFailed                 = TransactionErrorKind{"InstructionError", ""}
	SignatureFailure                  = TransactionErrorKind{"SignatureFailure", "Transaction did not pass signature verification"}
	InvalidProgramForExecution        = TransactionErrorKind{"InvalidProgramForExecution", "This program may not be used for executing instructions"}
	SanitizeFailure                   = TransactionErrorKind{"SanitizeFailure", "Transaction failed to sanitize accounts offsets correctly"}
	AddressLookupTableNotFound        = TransactionErrorKind{"AddressLookupTableNotFound", "Transaction loads an address table account that doesn't exist"}
	InvalidAddressLookupTableOwner    = TransactionErrorKind{"InvalidAddressLookupTableOwner", "Transaction loads an address table account with an invalid owner"}
	InvalidAddressLookupTableData     = TransactionErrorKind{"InvalidAddressLookupTableData", "Transaction loads an address table account with invalid data"}
	InvalidAddressLookupTableIndex    = TransactionErrorKind{"InvalidAddressLookupTableIndex", "Transaction address table lookup uses an invalid index"}
	TooManyAccountLocks               = TransactionErrorKind{"TooManyAccountLocks", "Transaction locked too many accounts"}
	DuplicateInstruction              = TransactionErrorKind{"DuplicateInstruction", ""}
	InsufficientFundsForRent          = TransactionErrorKind{"InsufficientFundsForRent", ""}
)

// TransactionError is why a transaction failed or was refused.
type TransactionError struct {
	Kind TransactionErrorKind
	// Index is the instruction of InstructionFailed and DuplicateInstruction,
	// and the account of InsufficientFundsForRent; 0 for the others.
	Index int
	// Instruction is the InstructionError or CustomError of InstructionFailed;
	// nil for the others.
	Instruction error
}

// Error returns Agave's text for the error.
func (e *TransactionError) Error() string {
	switch e.Kind {
	case InstructionFailed:
		return fmt.Sprintf("Error processing Instruction %d: %v", e.Index, e.Instruction)
	case DuplicateInstruction:
		return fmt.Sprintf("Transaction contains a duplicate instruction (%d) that is not allowed", e.Index)
	case InsufficientFundsForRent:
		return fmt.Sprintf("Transaction results in an account (%d) with insufficient funds for rent", e.Index)
	default:
		return e.Kind.text
	}
}

// Unwrap returns the error of the instruction that failed, if one did.
func (e *TransactionError) Unwrap() error { return e.Instruction }

// MarshalJSON writes Agave's form of the error: a name, or an object for the
// kinds that carry an index.
func (e *TransactionError) MarshalJSON() ([]byte, error) {
	switch e.Kind {
	case InstructionFailed:
		return json.Marshal(map[string][2]any{"InstructionError": {e.Index, e.Instruction}})
	case DuplicateInstruction:
		return json.Marshal(map[string]int{"DuplicateInstruction": e.Index})
	case InsufficientFundsForRent:
		return json.Marshal(map[string]any{"InsufficientFundsForRent": map[string]int{"account_index": e.Index}})
	default:
		return json.Marshal(e.Kind.name)
	}
}

// instructionFailed makes the error of a transaction whose instruction i failed with err. An
// err that is neither an InstructionError nor a CustomError is a bug in the
// program, and becomes GenericError.
func instructionFailed(i int, err error) *TransactionError {
	var builtin InstructionError
	var custom CustomError
	if !errors.As(err, &builtin) && !errors.As(err, &custom) {
		err = ErrGenericError
	}
	return &TransactionError{Kind: InstructionFailed, Index: i, Instruction: err}
}

func newError(kind TransactionErrorKind) *TransactionError {
	return &TransactionError{Kind: kind}
}
