package bank

import (
	"encoding/json"
	"errors"
	"fmt"
)

// InstructionError is why one instruction failed: a variant of Agave's
// InstructionError enum, by name. It is marshalled as that name.
type InstructionError string

// The instruction errors that the bank and its programs return.
const (
	ErrGenericError                InstructionError = "GenericError"
	ErrInvalidArgument             InstructionError = "InvalidArgument"
	ErrInvalidInstructionData      InstructionError = "InvalidInstructionData"
	ErrInvalidAccountData          InstructionError = "InvalidAccountData"
	ErrMissingRequiredSignature    InstructionError = "MissingRequiredSignature"
	ErrAccountAlreadyInitialized   InstructionError = "AccountAlreadyInitialized"
	ErrUninitializedAccount        InstructionError = "UninitializedAccount"
	ErrUnbalancedInstruction       InstructionError = "UnbalancedInstruction"
	ErrModifiedProgramID           InstructionError = "ModifiedProgramId"
	ErrExternalAccountLamportSpend InstructionError = "ExternalAccountLamportSpend"
	ErrExternalAccountDataModified InstructionError = "ExternalAccountDataModified"
	ErrReadonlyLamportChange       InstructionError = "ReadonlyLamportChange"
	ErrReadonlyDataModified        InstructionError = "ReadonlyDataModified"
	ErrNotEnoughAccountKeys        InstructionError = "NotEnoughAccountKeys"
	ErrAccountDataSizeChanged      InstructionError = "AccountDataSizeChanged"
	ErrUnsupportedProgramID        InstructionError = "UnsupportedProgramId"
	ErrCallDepth                   InstructionError = "CallDepth"
	ErrMissingAccount              InstructionError = "MissingAccount"
	ErrInvalidSeeds                InstructionError = "InvalidSeeds"
	ErrInvalidRealloc              InstructionError = "InvalidRealloc"
	ErrComputationalBudgetExceeded InstructionError = "ComputationalBudgetExceeded"
	ErrPrivilegeEscalation         InstructionError = "PrivilegeEscalation"
	ErrIncorrectProgramID          InstructionError = "IncorrectProgramId"
	ErrInvalidAccountOwner         InstructionError = "InvalidAccountOwner"
	ErrArithmeticOverflow          InstructionError = "ArithmeticOverflow"
	ErrIllegalOwner                InstructionError = "IllegalOwner"
	ErrReentrancyNotAllowed        InstructionError = "ReentrancyNotAllowed"
)

// instructionErrorTexts is Agave's Display of each error: it appears in logs
// and in the message of a preflight failure, which clients match on.
var instructionErrorTexts = map[InstructionError]string{
	ErrGenericError:                "generic instruction error",
	ErrInvalidArgument:             "invalid program argument",
	ErrInvalidInstructionData:      "invalid instruction data",
	ErrInvalidAccountData:          "invalid account data for instruction",
	ErrMissingRequiredSignature:    "missing required signature for instruction",
	ErrAccountAlreadyInitialized:   "instruction requires an uninitialized account",
	ErrUninitializedAccount:        "instruction requires an initialized account",
	ErrUnbalancedInstruction:       "sum of account balances before and after instruction do not match",
	ErrModifiedProgramID:           "instruction illegally modified the program id of an account",
	ErrExternalAccountLamportSpend: "instruction spent from the balance of an account it does not own",
	ErrExternalAccountDataModified: "instruction modified data of an account it does not own",
	ErrReadonlyLamportChange:       "instruction changed the balance of a read-only account",
	ErrReadonlyDataModified:        "instruction modified data of a read-only account",
	ErrNotEnoughAccountKeys:        "insufficient account keys for instruction",
	ErrAccountDataSizeChanged:      "program other than the account's owner changed the size of the account data",
	ErrUnsupportedProgramID:        "Unsupported program id",
	ErrCallDepth:                   "Cross-program invocation call depth too deep",
	ErrMissingAccount:              "An account required by the instruction is missing",
	ErrInvalidSeeds:                "Provided seeds do not result in a valid address",
	ErrInvalidRealloc:              "Failed to reallocate account data",
	ErrComputationalBudgetExceeded: "Computational budget exceeded",
	ErrPrivilegeEscalation:         "Cross-program invocation with unauthorized signer or writable account",
	ErrIncorrectProgramID:          "incorrect program id for instruction",
	ErrInvalidAccountOwner:         "Invalid account owner",
	ErrArithmeticOverflow:          "Program arithmetic overflowed",
	ErrIllegalOwner:                "Provided owner is not allowed",
	ErrReentrancyNotAllowed:        "Cross-program invocation reentrancy not allowed for this instruction",
}

// Error returns Agave's text for the error.
func (e InstructionError) Error() string {
	return instructionErrorTexts[e]
}

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

// TransactionErrorKind names one variant of Agave's TransactionError enum.
type TransactionErrorKind string

// The transaction errors of the bank.
const (
	AccountLoadedTwice                TransactionErrorKind = "AccountLoadedTwice"
	MaxLoadedAccountsDataSizeExceeded TransactionErrorKind = "MaxLoadedAccountsDataSizeExceeded"
	AccountNotFound                   TransactionErrorKind = "AccountNotFound"
	ProgramAccountNotFound            TransactionErrorKind = "ProgramAccountNotFound"
	InsufficientFundsForFee           TransactionErrorKind = "InsufficientFundsForFee"
	InvalidAccountForFee              TransactionErrorKind = "InvalidAccountForFee"
	AlreadyProcessed                  TransactionErrorKind = "AlreadyProcessed"
	BlockhashNotFound                 TransactionErrorKind = "BlockhashNotFound"
	InstructionFailed                 TransactionErrorKind = "InstructionError"
	SignatureFailure                  TransactionErrorKind = "SignatureFailure"
	InvalidProgramForExecution        TransactionErrorKind = "InvalidProgramForExecution"
	SanitizeFailure                   TransactionErrorKind = "SanitizeFailure"
	AddressLookupTableNotFound        TransactionErrorKind = "AddressLookupTableNotFound"
	InvalidAddressLookupTableOwner    TransactionErrorKind = "InvalidAddressLookupTableOwner"
	InvalidAddressLookupTableData     TransactionErrorKind = "InvalidAddressLookupTableData"
	InvalidAddressLookupTableIndex    TransactionErrorKind = "InvalidAddressLookupTableIndex"
	TooManyAccountLocks               TransactionErrorKind = "TooManyAccountLocks"
	DuplicateInstruction              TransactionErrorKind = "DuplicateInstruction"
	InsufficientFundsForRent          TransactionErrorKind = "InsufficientFundsForRent"
	WouldExceedMaxBlockCostLimit      TransactionErrorKind = "WouldExceedMaxBlockCostLimit"
	WouldExceedMaxAccountCostLimit    TransactionErrorKind = "WouldExceedMaxAccountCostLimit"
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

// transactionErrorTexts is Agave's Display of each kind that carries no index.
var transactionErrorTexts = map[TransactionErrorKind]string{
	MaxLoadedAccountsDataSizeExceeded: "Transaction exceeded max loaded accounts data size cap",
	AccountLoadedTwice:                "Account loaded twice",
	AccountNotFound:                   "Attempt to debit an account but found no record of a prior credit.",
	ProgramAccountNotFound:            "Attempt to load a program that does not exist",
	InsufficientFundsForFee:           "Insufficient funds for fee",
	InvalidAccountForFee:              "This account may not be used to pay transaction fees",
	AlreadyProcessed:                  "This transaction has already been processed",
	BlockhashNotFound:                 "Blockhash not found",
	SignatureFailure:                  "Transaction did not pass signature verification",
	InvalidProgramForExecution:        "This program may not be used for executing instructions",
	SanitizeFailure:                   "Transaction failed to sanitize accounts offsets correctly",
	AddressLookupTableNotFound:        "Transaction loads an address table account that doesn't exist",
	InvalidAddressLookupTableOwner:    "Transaction loads an address table account with an invalid owner",
	InvalidAddressLookupTableData:     "Transaction loads an address table account with invalid data",
	InvalidAddressLookupTableIndex:    "Transaction address table lookup uses an invalid index",
	TooManyAccountLocks:               "Transaction locked too many accounts",
	WouldExceedMaxBlockCostLimit:      "Transaction would exceed max Block Cost Limit",
	WouldExceedMaxAccountCostLimit:    "Transaction would exceed max account limit within the block",
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
		return transactionErrorTexts[e.Kind]
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
		return json.Marshal(string(e.Kind))
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
