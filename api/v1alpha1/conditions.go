package v1alpha1

// The conditions. Every pass sets those that apply, with the generation that they
// describe. The others are absent: AutoscalingActive without spec.autoscaling, and
// Reconciling and Stalled while they are not true.
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
	// ConditionSpendingCapped: caps bound what clients can make the fleet spend. It does
	// not affect Ready.
	ConditionSpendingCapped = "SpendingCapped"
	// ConditionAvailable: pods serve clients.
	ConditionAvailable = "Available"
	// ConditionAutoscalingActive: the backlog sizes the fleet. Absent without
	// spec.autoscaling.
	ConditionAutoscalingActive = "AutoscalingActive"
	// ConditionReady sums up the other conditions.
	ConditionReady = "Ready"
	// ConditionReconciling: what is declared is not yet what runs (kstatus).
	ConditionReconciling = "Reconciling"
	// ConditionStalled: what is declared will not run without somebody's help (kstatus).
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
	// ReasonSecretNotFound, ReasonSecretKeyMissing: the message names Secret and key.
	ReasonSecretNotFound   = "SecretNotFound"
	ReasonSecretKeyMissing = "SecretKeyMissing"
	// ReasonSecretMalformed: the value is not what it must be; the message says what was expected.
	ReasonSecretMalformed = "SecretMalformed"
	// ReasonDuplicateKey: two references lead to the same fee payer.
	ReasonDuplicateKey = "DuplicateKey"
	// ReasonConfigMapNotFound, ReasonConfigMapKeyMissing, ReasonConfigMapMalformed: a profile or a verifying key.
	ReasonConfigMapNotFound   = "ConfigMapNotFound"
	ReasonConfigMapKeyMissing = "ConfigMapKeyMissing"
	ReasonConfigMapMalformed  = "ConfigMapMalformed"
	// ReasonSecretForeign: a Secret with the name of a generated key exists, but the
	// operator did not make it for this pool.
	ReasonSecretForeign = "SecretForeign"
	// ReasonSecretNotUsable, ReasonConfigMapNotUsable: the object's labels do not allow this RelayPool to use it.
	ReasonSecretNotUsable    = "SecretNotUsable"
	ReasonConfigMapNotUsable = "ConfigMapNotUsable"
	// ReasonGeneratedKey: the Secret is a generated fee payer key, but another RelayPool
	// or another field names it.
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
	// ReasonAccountForeign: another program owns the account.
	ReasonAccountForeign = "AccountForeign"
	// ReasonTreeMismatch: the tree account does not agree with itself under the profile.
	ReasonTreeMismatch = "TreeMismatch"
	// ReasonTreeFull: the tree has hardly any free leaves.
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
	// ReasonMetricUnavailable: the autoscaler cannot read the backlog; the message is the
	// autoscaler's.
	ReasonMetricUnavailable = "MetricUnavailable"
	// ReasonLimited: more pods would not help, because the waiting work is held.
	ReasonLimited = "Limited"
	// ReasonPending: the autoscaler has not reported yet. Status Unknown.
	ReasonPending = "Pending"
)

// Reasons of Ready, Reconciling and Stalled. When a condition keeps Ready from being True,
// Ready has that condition's reason instead.
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
	// ReasonRotationFailed: a step of the rotation failed, and is not retried automatically.
	ReasonRotationFailed = "RotationFailed"
)
