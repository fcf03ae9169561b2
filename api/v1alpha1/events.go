package v1alpha1

// Reasons of events on a RelayPool. Each is emitted when something changed,
// never on every pass.
const (
	// EventPoolInitialised: the pool was found initialised, and the gate opened.
	EventPoolInitialised = "PoolInitialised"
	// EventKeyGenerated: a fee payer's key was made; the note has its address.
	EventKeyGenerated = "KeyGenerated"
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
	// EventDriftRepaired: an owned object had been changed by somebody else.
	EventDriftRepaired = "DriftRepaired"
	// EventPruned: an owned object was deleted because it is no longer wanted.
	EventPruned = "Pruned"
	// EventFundedKeyLeft: the RelayPool is deleted, and one of its keys has funds.
	EventFundedKeyLeft = "FundedKeyLeft"
	// EventScalingHandedOver: the replicas were handed over between operator and autoscaler.
	EventScalingHandedOver = "ScalingHandedOver"
	// EventKeyChanged: the key in a Secret has another address than before.
	EventKeyChanged = "KeyChanged"
)
