package v1alpha1

// The conditions. Every pass sets those that apply, with the generation that they
// describe. The others are absent: Exposed without spec.api.ingress and spec.api.gateway,
// AutoscalingActive without spec.autoscaling, KeysBackedUp without spec.feePayers.generate.backup,
// and Reconciling and Stalled while they are not true.
const (
	// ConditionAccepted: the spec itself is valid. The objects that it names are not
	// considered.
	ConditionAccepted = "Accepted"
	// ConditionSecretsResolved: every Secret and ConfigMap that the spec names
	// exists, and its values are valid.
	ConditionSecretsResolved = "SecretsResolved"
	// ConditionPoolInitialised: the pool exists on the declared chain, matches the
	// profile, and accepts transactions.
	ConditionPoolInitialised = "PoolInitialised"
	// ConditionFeePayersFunded: every payer in use has its minimum balance.
	ConditionFeePayersFunded = "FeePayersFunded"
	// ConditionKeysBackedUp: a copy of each generated key in use is acknowledged. Absent without
	// spec.feePayers.generate.backup. This condition does not affect Ready.
	ConditionKeysBackedUp = "KeysBackedUp"
	// ConditionSpendingCapped: there is a cap on what clients can make the fleet spend. This
	// condition does not affect Ready.
	ConditionSpendingCapped = "SpendingCapped"
	// ConditionAvailable: pods serve clients.
	ConditionAvailable = "Available"
	// ConditionExposed: Ingress, HTTPRoute and load balancer lead clients to the pods. Absent
	// unless spec.api serves clients outside of the cluster.
	ConditionExposed = "Exposed"
	// ConditionAutoscalingActive: the backlog sizes the fleet. Absent without
	// spec.autoscaling.
	ConditionAutoscalingActive = "AutoscalingActive"
	// ConditionReady sums up the other conditions.
	ConditionReady = "Ready"
	// ConditionReconciling: the fleet does not yet run as declared. Tools that use kstatus read
	// this condition.
	ConditionReconciling = "Reconciling"
	// ConditionStalled: the fleet will not run as declared until a person acts. Tools that
	// use kstatus read this condition.
	ConditionStalled = "Stalled"
)

// Reasons that any condition may have.
const (
	// ReasonInternalError: a fact could not be read; the operator's log says why. The status
	// is Unknown.
	ReasonInternalError = "InternalError"
	// ReasonNotChecked: the first reading is under way. The status is Unknown.
	ReasonNotChecked = "NotChecked"
	// ReasonDeleting: the RelayPool is being deleted.
	ReasonDeleting = "Deleting"
)

// Reasons of Accepted.
const (
	ReasonValid = "Valid"
	// ReasonInvalidSpec: the message names the field, what was expected and what to do.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonNotAllowed: the operator's settings do not allow the image, a field of the template or
	// a field of the API.
	ReasonNotAllowed = "NotAllowed"
)

// Reasons of SecretsResolved.
const (
	ReasonResolved = "Resolved"
	// ReasonSecretNotFound, ReasonSecretKeyMissing: the message names the Secret and the key.
	ReasonSecretNotFound   = "SecretNotFound"
	ReasonSecretKeyMissing = "SecretKeyMissing"
	// ReasonSecretMalformed: the value does not have the expected form, which the message
	// names.
	ReasonSecretMalformed = "SecretMalformed"
	// ReasonDuplicateKey: two references, or a reference and a signer or generated key, lead to
	// the same fee payer.
	ReasonDuplicateKey = "DuplicateKey"
	// ReasonConfigMapNotFound, ReasonConfigMapKeyMissing, ReasonConfigMapMalformed: these
	// are about the ConfigMap of a profile or of a verifying key.
	ReasonConfigMapNotFound   = "ConfigMapNotFound"
	ReasonConfigMapKeyMissing = "ConfigMapKeyMissing"
	ReasonConfigMapMalformed  = "ConfigMapMalformed"
	// ReasonSecretForeign: a Secret with the name of a generated key exists, but the
	// operator did not make it for this pool.
	ReasonSecretForeign = "SecretForeign"
	// ReasonSecretNotUsable, ReasonConfigMapNotUsable: the object's labels do not allow this
	// RelayPool to use the object.
	ReasonSecretNotUsable    = "SecretNotUsable"
	ReasonConfigMapNotUsable = "ConfigMapNotUsable"
	// ReasonGeneratedKey: the Secret has a generated fee payer key. Only the RelayPool for
	// which the key was made may name it, and only as a fee payer's key.
	ReasonGeneratedKey = "GeneratedKey"
)

// Reasons of PoolInitialised. The status is True for the first reason, Unknown for the
// last two, and False for the others, whose messages name the account and what to do.
const (
	ReasonInitialised = "Initialised"
	// ReasonWrongCluster: the endpoint's genesis hash is not the declared one.
	ReasonWrongCluster = "WrongCluster"
	// ReasonProgramMissing: there is no executable program at the address.
	ReasonProgramMissing = "ProgramMissing"
	// ReasonAccountMissing: the account of the pool, the tree or the treasury does not exist.
	ReasonAccountMissing = "AccountMissing"
	// ReasonAccountForeign: another program owns the account.
	ReasonAccountForeign = "AccountForeign"
	// ReasonTreeMismatch: the tree account, decoded as the profile says, is inconsistent.
	ReasonTreeMismatch = "TreeMismatch"
	// ReasonTreeFull: the tree has too few free leaves.
	ReasonTreeFull = "TreeFull"
	// ReasonMintUnknown: a declared mint is not a mint of the SPL Token program.
	ReasonMintUnknown = "MintUnknown"
	// ReasonVerifyingKeyUnfit: the verifying key does not belong to the pool's circuit, or must
	// not be used on this chain.
	ReasonVerifyingKeyUnfit = "VerifyingKeyUnfit"
	// ReasonChainUnavailable: no endpoint answers.
	ReasonChainUnavailable = "ChainUnavailable"
	// ReasonConfigurationIncomplete: the spec is not accepted, or a Secret or ConfigMap that
	// the check needs is not resolved.
	ReasonConfigurationIncomplete = "ConfigurationIncomplete"
)

// Reasons of FeePayersFunded.
const (
	ReasonFunded = "Funded"
	// ReasonUnderfunded: the message says which address needs how much.
	ReasonUnderfunded = "Underfunded"
	// ReasonRetiredKeyFunded: a retired key has funds again; the message says how to move them.
	ReasonRetiredKeyFunded = "RetiredKeyFunded"
	// ReasonBalancesUnknown: the balance of a payer could not be read. The status is Unknown.
	ReasonBalancesUnknown = "BalancesUnknown"
	// ReasonNoPayers: there is no usable key.
	ReasonNoPayers = "NoPayers"
)

// Reasons of KeysBackedUp.
const (
	ReasonBackedUp = "BackedUp"
	// ReasonNotBackedUp: the message names the Secrets, and how to acknowledge a copy.
	ReasonNotBackedUp = "NotBackedUp"
)

// Reasons of SpendingCapped.
const (
	ReasonCapped = "Capped"
	// ReasonNoSpendCap: there is no cap on what the payers spend on transfers. Only their
	// balances limit it.
	ReasonNoSpendCap = "NoSpendCap"
)

// Reasons of Available.
const (
	ReasonAvailable = "Available"
	// ReasonHeld: spec.pool.gate is Hold, so no pod is started until the pool is initialised.
	ReasonHeld = "Held"
	// ReasonScaledToZero: spec.replicas is 0.
	ReasonScaledToZero = "ScaledToZero"
	// ReasonPodsNotReady: the message says why the pods are not ready.
	ReasonPodsNotReady = "PodsNotReady"
	// ReasonRollingOut: some pods serve while others are started or replaced. The status is
	// True.
	ReasonRollingOut = "RollingOut"
	// ReasonNotDeployed: the operator has not made the pods. The message says why.
	ReasonNotDeployed = "NotDeployed"
)

// Reasons of Exposed; ProviderMissing, Pending and Refused are other ones.
const (
	ReasonExposed = "Exposed"
	// ReasonNotAccepted: a Gateway does not accept the HTTPRoute, or cannot resolve what the
	// route refers to. The message contains the Gateway's own message.
	ReasonNotAccepted = "NotAccepted"
)

// Reasons of AutoscalingActive.
const (
	ReasonScaling = "Scaling"
	// ReasonProviderMissing: the CRD of KEDA is not installed, or that of HTTPRoutes.
	ReasonProviderMissing = "ProviderMissing"
	// ReasonMetricUnavailable: the autoscaler cannot read the backlog, or cannot change the
	// fleet's size. The message contains the autoscaler's own message.
	ReasonMetricUnavailable = "MetricUnavailable"
	// ReasonLimited: more pods would not help, because every waiting submission is held. The
	// message names the reasons.
	ReasonLimited = "Limited"
	// ReasonPending: the autoscaler, or the controller of the Ingress or the Gateway, has not
	// reported yet, or the gate holds the fleet. The status is Unknown.
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
	// ReasonForeignObject: an object with a name that the operator needs belongs to somebody
	// else.
	ReasonForeignObject = "ForeignObject"
	// ReasonRefused: the API server refused an object; the message says which and why.
	ReasonRefused = "Refused"
	// ReasonRotationFailed: a step of the rotation failed, and is not retried automatically.
	ReasonRotationFailed = "RotationFailed"
)
