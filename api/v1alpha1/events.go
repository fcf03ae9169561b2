package v1alpha1

// Reasons of events on a RelayPool. Each is emitted when something changed,
// never on every pass.
const (
	// EventPoolInitialised: the operator found the pool initialised for the first time. From now
	// on, spec.pool.gate no longer keeps pods from starting.
	EventPoolInitialised = "PoolInitialised"
	// EventKeyGenerated: a fee payer's key was made. The event's message has its address.
	EventKeyGenerated = "KeyGenerated"
	// EventKeyLost: the Secret of a generated key that may hold funds does not exist any more.
	EventKeyLost = "KeyLost"
	// EventKeyAdopted: a key of an earlier RelayPool with the same name is used again.
	EventKeyAdopted = "KeyAdopted"
	// EventRotationStep: a rotation began a step.
	EventRotationStep = "RotationStep"
	// EventRotationFailed: a step of a rotation failed.
	EventRotationFailed = "RotationFailed"
	// EventRetiredKeyFunded: a retired key has funds again.
	EventRetiredKeyFunded = "RetiredKeyFunded"
	// EventForeignObject: an object belongs to somebody else and was not changed.
	EventForeignObject = "ForeignObject"
	// EventDriftRepaired: somebody else had changed an owned object; the operator restored it.
	EventDriftRepaired = "DriftRepaired"
	// EventPruned: an owned object was deleted because it is no longer wanted.
	EventPruned = "Pruned"
	// EventFundedKeyLeft: the RelayPool is being deleted, and one of its keys still has funds.
	EventFundedKeyLeft = "FundedKeyLeft"
	// EventScalingHandedOver: from now on the autoscaler, not the operator, sets the number of
	// replicas; or the operator does so again.
	EventScalingHandedOver = "ScalingHandedOver"
	// EventKeyChanged: the key in a Secret has another address than before.
	EventKeyChanged = "KeyChanged"
)
