package shieldpool

// systemResultWithNegativeLamports is the system program's Custom(1), which the
// pool's instruction passes through when the payer cannot fund an account.
const systemResultWithNegativeLamports = 1

var outerClasses = map[string]Class{
	"AlreadyProcessed":                      ClassAlreadyProcessed,
	"BlockhashNotFound":                     ClassBlockhash,
	"InsufficientFundsForFee":               ClassFeePayerEmpty,
	"AccountNotFound":                       ClassFeePayerEmpty, // the fee payer was never funded
	"AccountInUse":                          ClassTransient,
	"WouldExceedMaxBlockCostLimit":          ClassTransient,
	"WouldExceedMaxAccountCostLimit":        ClassTransient,
	"WouldExceedMaxVoteCostLimit":           ClassTransient,
	"WouldExceedAccountDataBlockLimit":      ClassTransient,
	"WouldExceedAccountDataTotalLimit":      ClassTransient,
	"TooManyAccountLocks":                   ClassBug,
	"ClusterMaintenance":                    ClassTransient,
	"ProgramCacheHitMaxLimit":               ClassTransient,
	"CommitCancelled":                       ClassTransient,
	"ResanitizationNeeded":                  ClassTransient,
	"ProgramAccountNotFound":                ClassOperator,
	"AddressLookupTableNotFound":            ClassOperator, // the relay's own table: submissions use no other
	"InvalidAddressLookupTableOwner":        ClassOperator,
	"InvalidAddressLookupTableData":         ClassOperator,
	"InvalidAddressLookupTableIndex":        ClassOperator,
	"InvalidProgramForExecution":            ClassOperator,
	"UnsupportedVersion":                    ClassOperator, // the network does not accept the format yet
	MaxLoadedDataExceeded:                   ClassRaiseCompute,
	"InvalidLoadedAccountsDataSizeLimit":    ClassBug,
	"SignatureFailure":                      ClassBug,
	"SanitizeFailure":                       ClassBug,
	"InvalidAccountForFee":                  ClassFeePayerEmpty,
	"ProgramExecutionTemporarilyRestricted": ClassTransient,
}

var instructionClasses = map[string]Class{
	"UninitializedAccount":        ClassNotInitialised,
	"ComputationalBudgetExceeded": ClassRaiseCompute,
	"ProgramFailedToComplete":     ClassRaiseCompute,
	"InvalidSeeds":                ClassBug,
	"MissingRequiredSignature":    ClassBug,
	"UnsupportedProgramId":        ClassOperator,
	"IncorrectProgramId":          ClassBug,
	"InsufficientFunds":           ClassFeePayerEmpty,
}

// ClassOfTransaction returns how the relay reacts to a transaction error. poolIndex is the index
// of the pool's instruction in the relay's transactions: a custom error of another instruction is
// the relay's own fault.
func (p *Profile) ClassOfTransaction(e *TransactionError, poolIndex int) Class {
	switch e.Kind {
	case "InsufficientFundsForRent":
		if e.Account == 0 {
			return ClassFeePayerEmpty
		}
		return ClassRecipientRent
	case "InstructionError":
		return p.classOfInstruction(e, poolIndex)
	}
	if c, ok := outerClasses[e.Kind]; ok {
		return c
	}
	return ClassBug
}

func (p *Profile) classOfInstruction(e *TransactionError, poolIndex int) Class {
	if e.Detail != "Custom" {
		if c, ok := instructionClasses[e.Detail]; ok {
			return c
		}
		return ClassBug
	}
	if e.Instruction != poolIndex {
		return ClassBug
	}
	if e.Custom == systemResultWithNegativeLamports {
		return ClassFeePayerEmpty
	}
	return p.ClassOf(e.Custom)
}
