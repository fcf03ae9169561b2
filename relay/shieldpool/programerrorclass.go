package shieldpool

// Class decides how the relay reacts to a program error.
type Class string

// The classes of program errors (protocol §5).
const (
	// ClassStaleProof: the root is no longer in the root history. The client has to make a new
	// proof, and the relay does not resubmit.
	ClassStaleProof Class = "stale_proof"
	// ClassSpent: a nullifier account exists, created by the submission itself or by another
	// transaction.
	ClassSpent Class = "spent"
	// ClassBadInput: permanent, no retry.
	ClassBadInput Class = "bad_input"
	// ClassOperator: the deployment's fault; new work is refused, queued work waits.
	ClassOperator Class = "operator"
	// ClassPolicy: refused by the program's policy; permanent.
	ClassPolicy Class = "policy"
	// ClassSwapNotReady: wait for the timeout slot.
	ClassSwapNotReady Class = "swap_not_ready"
	// ClassTransient: retry with backoff.
	ClassTransient Class = "transient"
	// ClassNotInitialised: an account of the pool does not exist.
	ClassNotInitialised Class = "not_initialised"
	// ClassFeePayerEmpty: the fee payer cannot pay.
	ClassFeePayerEmpty Class = "fee_payer_empty"
	// ClassRecipientRent: the recipient would be left below rent exemption.
	ClassRecipientRent Class = "recipient_rent"
	// ClassRaiseCompute: the compute limit, or the limit of loaded account data, was too low;
	// raise it and retry.
	ClassRaiseCompute Class = "raise_compute"
	// ClassAlreadyProcessed: this signature is on the chain; look it up.
	ClassAlreadyProcessed Class = "already_processed"
	// ClassBlockhash: the node does not know the blockhash, or the blockhash has expired; the
	// relay retries, and signs again only when the transaction can no longer land.
	ClassBlockhash Class = "blockhash_not_found"
	// ClassBug: the relay built the transaction wrongly; the submission fails, with an alert.
	ClassBug Class = "bug"
)

// ClassRange is the class of the custom codes First to Last, both included.
type ClassRange struct {
	First, Last uint32
	Class       Class
}

// ClassOf returns the class of a custom program code. It returns ClassBadInput for a code that is
// in no range: such a failure is permanent.
func (p *Profile) ClassOf(code uint32) Class {
	for _, r := range p.Classes {
		if code >= r.First && code <= r.Last {
			return r.Class
		}
	}
	return ClassBadInput
}

// ErrorName returns the profile's name of a custom program code, or "unknown".
func (p *Profile) ErrorName(code uint32) string {
	if n, ok := p.Errors[code]; ok {
		return n
	}
	return "unknown"
}

// These are the codes that the relay and the local chain use by name.
const (
	CodeRootNotFound            uint32 = 0x1001
	CodeProofInvalid            uint32 = 0x1010
	CodeDoubleSpend             uint32 = 0x1020
	CodeNullifierAlreadyUsed    uint32 = 0x1023
	CodeConservation            uint32 = 0x1031
	CodeInvalidAmount           uint32 = 0x1033
	CodeInvalidInstructionData  uint32 = 0x1061
	CodeProofVerificationFailed uint32 = 0x1076
	CodeMerkleTreeFull          uint32 = 0x1080
	CodeSwapNotReady            uint32 = 0x1037
	CodeSlippage                uint32 = 6001
)

func defaultErrorNames() map[uint32]string {
	return map[uint32]string{
		CodeRootNotFound:            "RootNotFound",
		CodeProofInvalid:            "ProofInvalid",
		CodeDoubleSpend:             "DoubleSpend",
		CodeNullifierAlreadyUsed:    "NullifierAlreadyUsed",
		CodeConservation:            "Conservation",
		CodeInvalidAmount:           "InvalidAmount",
		CodeInvalidInstructionData:  "InvalidInstructionData",
		CodeProofVerificationFailed: "ProofVerificationFailed",
		CodeMerkleTreeFull:          "MerkleTreeFull",
	}
}

func defaultClasses() []ClassRange {
	one := func(code uint32, c Class) ClassRange { return ClassRange{code, code, c} }
	return []ClassRange{
		{0x1000, 0x1001, ClassStaleProof},
		one(0x1020, ClassSpent), one(0x1023, ClassSpent),
		{0x1010, 0x1013, ClassBadInput}, one(0x1022, ClassBadInput), one(0x1024, ClassBadInput),
		{0x1030, 0x1035, ClassBadInput}, {0x1038, 0x1041, ClassBadInput}, {0x1060, 0x1063, ClassBadInput},
		{0x1070, 0x1076, ClassBadInput}, one(0x1090, ClassBadInput),
		one(0x1002, ClassOperator), one(0x1021, ClassOperator), one(0x1036, ClassOperator),
		{0x1050, 0x105D, ClassOperator}, {0x1080, 0x1082, ClassOperator},
		{0x10A0, 0x10B3, ClassPolicy},
		one(0x1037, ClassSwapNotReady),
		one(CodeSlippage, ClassTransient),
	}
}
