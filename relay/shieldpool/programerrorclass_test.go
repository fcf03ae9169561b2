package shieldpool

import "testing"

func TestClasses(t *testing.T) {
	t.Parallel()
	p := ShieldPoolV1()
	custom := func(code uint32) *TransactionError {
		return &TransactionError{Kind: "InstructionError", Instruction: PoolInstruction, Detail: "Custom", Custom: code}
	}
	named := func(detail string) *TransactionError {
		return &TransactionError{Kind: "InstructionError", Instruction: PoolInstruction, Detail: detail}
	}
	tests := map[Class][]*TransactionError{
		ClassStaleProof:   {custom(0x1000), custom(0x1001)},
		ClassSpent:        {custom(0x1020), custom(0x1023)},
		ClassBadInput:     {custom(0x1010), custom(0x1013), custom(0x1022), custom(0x1024), custom(0x1030), custom(0x1035), custom(0x1038), custom(0x1041), custom(0x1060), custom(0x1063), custom(0x1070), custom(0x1076), custom(0x1090), custom(0x9999)},
		ClassOperator:     {custom(0x1002), custom(0x1021), custom(0x1036), custom(0x1050), custom(0x105D), custom(0x1080), custom(0x1082), {Kind: "ProgramAccountNotFound"}, {Kind: "UnsupportedVersion"}},
		ClassPolicy:       {custom(0x10A0), custom(0x10B3)},
		ClassSwapNotReady: {custom(0x1037)},
		ClassTransient:    {custom(6001), {Kind: "AccountInUse"}, {Kind: "WouldExceedMaxAccountCostLimit"}},
		ClassFeePayerEmpty: {{Kind: "InsufficientFundsForFee"}, {Kind: "InsufficientFundsForRent", Account: 0}, custom(1),
			{Kind: "AccountNotFound"}},
		ClassRecipientRent:    {{Kind: "InsufficientFundsForRent", Account: 6}},
		ClassAlreadyProcessed: {{Kind: "AlreadyProcessed"}},
		ClassBlockhash:        {{Kind: "BlockhashNotFound"}},
		ClassNotInitialised:   {named("UninitializedAccount")},
		ClassRaiseCompute:     {named("ComputationalBudgetExceeded"), named("ProgramFailedToComplete"), {Kind: MaxLoadedDataExceeded}},
		ClassBug: {named("InvalidSeeds"), named("MissingRequiredSignature"), {Kind: "SomethingNew"},
			{Kind: "InstructionError", Instruction: 0, Detail: "Custom", Custom: 1}},
	}
	for want, errs := range tests {
		for _, e := range errs {
			if got := p.ClassOfTransaction(e, PoolInstruction); got != want {
				t.Errorf("%v is %s, want %s", e, got, want)
			}
		}
	}
	for code, want := range map[uint32]string{0x1001: "RootNotFound", 0x1010: "ProofInvalid", 0x1020: "DoubleSpend", 0x1023: "NullifierAlreadyUsed", 0x1031: "Conservation", 0x1033: "InvalidAmount", 0x1061: "InvalidInstructionData", 0x1076: "ProofVerificationFailed", 0x1080: "MerkleTreeFull", 7: "unknown"} {
		if got := p.ErrorName(code); got != want {
			t.Errorf("0x%x is %s, want %s", code, got, want)
		}
	}
}
