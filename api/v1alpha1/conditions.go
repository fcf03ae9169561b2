package v1alpha1

// The conditions. Those that apply are set on every pass, with the generation
// that they speak of; one that does not apply is absent: AutoscalingActive
// without spec.autoscaling, Reconciling and Stalled while they are not true.
const (
	// ConditionAccepted: the spec is valid by itself, without the objects that it names.
	ConditionAccepted = "Accepted"
	// ConditionSecretsResolved: every Secret and ConfigMap that the spec names
	// exists, and its values are valid.
	ConditionSecretsResolved = "SecretsResolved"
	// ConditionPoolInitialised: the pool is on the declared chain, is what the
	// profile says, and takes transactions.
	ConditionPoolInitialised = "PoolInitialised"
	// ConditionFeePayersFunded: every payer in use has its minimum.
	ConditionFeePayersFunded = "FeePayersFunded"
	// ConditionSpendingCapped: what anybody can have the fleet spend is bounded. Ready
	// does not rest on it.
	ConditionSpendingCapped = "SpendingCapped"
	// ConditionAvailable: pods serve clients.
	ConditionAvailable = "Available"
	// ConditionAutoscalingActive: the backlog sizes the fleet. Absent without
	// spec.autoscaling.
	ConditionAutoscalingActive = "AutoscalingActive"
	// ConditionReady sums the others up.
	ConditionReady = "Ready"
	// ConditionReconciling: what is declared is not yet what runs (kstatus).
	ConditionReconciling = "Reconciling"
	// ConditionStalled: it will not become so without somebody's help (kstatus).
	ConditionStalled = "Stalled"
)

// Reasons that any condition may have.
const (
	// ReasonInternalError: a fact could not be read; the operator's log says why. Status Unknown.
	ReasonInternalError = "InternalError"
	// ReasonNotChecked: the first reading is under way. Status Unknown.
	ReasonNotChecked = "NotChecked"
	// ReasonDeleting: the RelayPool is being deleted.
	ReasonDeleting = "Deleting"
)

// Reasons of Accepted.
const (
	ReasonValid = "Valid"
	// ReasonInvalidSpec: the message names the field, what was expected and what to do.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonNotAllowed: the operator's settings do not let a RelayPool have this image or this field of the template.
	ReasonNotAllowed = "NotAllowed"
)

// Reasons of SecretsResolved.
const (
	ReasonResolved = "Resolved"
	// ReasonSecretNotFound, ReasonSecretKeyMissing: by the name of Secret and key.
	ReasonSecretNotFound   = "SecretNotFound"
	ReasonSecretKeyMissing = "SecretKeyMissing"
	// ReasonSecretMalformed: the value is not what it must be; the message says what was expected.
	ReasonSecretMalformed = "SecretMalformed"
	// ReasonDuplicateKey: two names lead to the same fee payer.
	ReasonDuplicateKey = "DuplicateKey"
	// ReasonConfigMapNotFound, ReasonConfigMapKeyMissing, ReasonConfigMapMalformed: a profile or a verifying key.
	ReasonConfigMapNotFound   = "ConfigMapNotFound"
	ReasonConfigMapKeyMissing = "ConfigMapKeyMissing"
	ReasonConfigMapMalformed  = "ConfigMapMalformed"
	// ReasonSecretForeign: a Secret with the name of a generated key is there and was not made by the operator for this pool.
	ReasonSecretForeign = "SecretForeign"
	// ReasonSecretNotUsable, ReasonConfigMapNotUsable: the object's labels do not allow this RelayPool to use it.
	ReasonSecretNotUsable    = "SecretNotUsable"
	ReasonConfigMapNotUsable = "ConfigMapNotUsable"
	// ReasonGeneratedKey: the Secret is a generated fee payer key, and named by another RelayPool or in another field.
	ReasonGeneratedKey = "GeneratedKey"
)

// Reasons of PoolInitialised. All but the first and the last two are False, and
// their messages name the account and what to do.
const (
	ReasonInitialised = "Initialised"
	// ReasonWrongCluster: the endpoint's genesis hash is not the declared one.
	ReasonWrongCluster = "WrongCluster"
	// ReasonProgramMissing: no executable program has the address.
	ReasonProgramMissing = "ProgramMissing"
	// ReasonAccountMissing: pool, tree or treasury has not been made.
	ReasonAccountMissing = "AccountMissing"
	// ReasonAccountForeign: another program owns it.
	ReasonAccountForeign = "AccountForeign"
	// ReasonTreeMismatch: the tree account does not agree with itself under the profile.
	ReasonTreeMismatch = "TreeMismatch"
	// ReasonTreeFull: the tree has hardly a leaf left.
	ReasonTreeFull = "TreeFull"
	// ReasonMintUnknown: a declared mint is no mint on the chain.
	ReasonMintUnknown = "MintUnknown"
	// ReasonVerifyingKeyUnfit: the verifying key is not of the pool's circuit.
	ReasonVerifyingKeyUnfit = "VerifyingKeyUnfit"
	// ReasonChainUnavailable: no endpoint answers. Status Unknown.
	ReasonChainUnavailable = "ChainUnavailable"
	// ReasonConfigurationIncomplete: what the check needs is not resolved. Status Unknown.
	ReasonConfigurationIncomplete = "ConfigurationIncomplete"
)

// Reasons of FeePayersFunded.
const (
	ReasonFunded = "Funded"
	// ReasonUnderfunded: the message says which address needs how much.
	ReasonUnderfunded = "Underfunded"
	// ReasonRetiredKeyFunded: a retired key has funds again; the message says how to move them.
	ReasonRetiredKeyFunded = "RetiredKeyFunded"
	// ReasonBalancesUnknown: no balance could be read. Status Unknown.
	ReasonBalancesUnknown = "BalancesUnknown"
	// ReasonNoPayers: there is no usable key.
	ReasonNoPayers = "NoPayers"
)

// Reasons of SpendingCapped.
const (
	ReasonCapped = "Capped"
	// ReasonNoSpendCap: nothing but their balance bounds what the payers pay for transfers.
	ReasonNoSpendCap = "NoSpendCap"
)

// Reasons of Available.
const (
	ReasonAvailable = "Available"
	// ReasonHeld: the gate holds the fleet until the pool is initialised.
	ReasonHeld = "Held"
	// ReasonScaledToZero: spec.replicas is 0.
	ReasonScaledToZero = "ScaledToZero"
	// ReasonPodsNotReady: the message has the pods' own reason.
	ReasonPodsNotReady = "PodsNotReady"
	// ReasonRollingOut: some pods serve while others are replaced. Status True.
	ReasonRollingOut = "RollingOut"
	// ReasonNotDeployed: what the pods need is not resolved, so none were made.
	ReasonNotDeployed = "NotDeployed"
)

// Reasons of AutoscalingActive.
const (
	ReasonScaling = "Scaling"
	// ReasonProviderMissing: KEDA's CRD is not installed.
	ReasonProviderMissing = "ProviderMissing"
	// ReasonMetricUnavailable: the autoscaler cannot read the backlog; the message is its own.
	ReasonMetricUnavailable = "MetricUnavailable"
	// ReasonLimited: more pods would not help, because the waiting work is held.
	ReasonLimited = "Limited"
	// ReasonPending: the autoscaler has not reported yet. Status Unknown.
	ReasonPending = "Pending"
)

// Reasons of Ready, Reconciling and Stalled, besides the reason of the
// condition that Ready takes over when it is not True.
const (
	ReasonReady = "Ready"
	// ReasonPaused: spec.paused stops the operator's changes.
	ReasonPaused = "Paused"
	// ReasonProgressing: objects are being made or pods rolled out.
	ReasonProgressing = "Progressing"
	// ReasonRotating: a key rotation is under way.
	ReasonRotating = "Rotating"
	// ReasonForeignObject: an object with a name that the operator needs belongs to somebody else.
	ReasonForeignObject = "ForeignObject"
	// ReasonRefused: the API server refused an object; the message says which and why.
	ReasonRefused = "Refused"
	// ReasonRotationFailed: a step of the rotation failed and is not tried again by itself.
	ReasonRotationFailed = "RotationFailed"
)
