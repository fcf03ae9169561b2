package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RelayPoolStatus is what the operator found at ObservedAt. Figures change
// faster than they are written here: metrics have them live.
type RelayPoolStatus struct {
	// Conditions are set on every pass. Conditions that do not apply are absent.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// ObservedGeneration is the generation of the newest spec that a pass has processed.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ObservedAt is when figures were last written.
	// +optional
	ObservedAt *metav1.Time `json:"observedAt,omitempty"`
	// InitialisedAt is when the pool was first seen initialised; the gate is open
	// from then on.
	// +optional
	InitialisedAt *metav1.Time `json:"initialisedAt,omitempty"`
	// DesiredReplicas is how many pods are wanted: what spec.replicas or the
	// autoscaler says, and 0 while the gate holds the fleet.
	// +optional
	DesiredReplicas int32 `json:"desiredReplicas"`
	// Replicas is how many pods there are, without those that are ending.
	// +optional
	Replicas int32 `json:"replicas"`
	// ReadyReplicas is how many pods serve clients.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`
	// TerminatingReplicas is how many pods hand their work over and end.
	// +optional
	TerminatingReplicas int32 `json:"terminatingReplicas,omitempty"`
	// Selector finds the pods, for the scale subresource.
	// +optional
	Selector string `json:"selector,omitempty"`
	// NextIndex is how many leaves the pool's tree has, rounded.
	// +optional
	NextIndex *int64 `json:"nextIndex,omitempty"`
	// Backlog is how many submissions wait for a worker, rounded.
	// +optional
	Backlog *int64 `json:"backlog,omitempty"`
	// FeePayers are the fleet's keys, by their public halves.
	// +optional
	// +listType=map
	// +listMapKey=address
	// +kubebuilder:validation:MaxItems=128
	FeePayers []FeePayerStatus `json:"feePayers,omitempty"`
	// Rotation is the rotation under way, or the last one.
	// +optional
	Rotation *RotationStatus `json:"rotation,omitempty"`
}

// FeePayerState is where a key is in its life.
//
// +kubebuilder:validation:Enum=Active;Incoming;Draining;Retired
type FeePayerState string

// FeePayerStatus is one key.
type FeePayerStatus struct {
	// Address is the public key, in base58; send SOL here to fund the key.
	// +required
	Address string `json:"address"`
	// SecretName is the Secret that holds the key.
	// +required
	SecretName string `json:"secretName"`
	// State of the key.
	// +required
	State FeePayerState `json:"state"`
	// BalanceLamports is the last balance that could be read, rounded down to
	// 0.01 SOL.
	// +optional
	BalanceLamports *int64 `json:"balanceLamports,omitempty"`
	// RunwayHours is how long the balance lasts at the recent rate of spending,
	// rounded; absent while nothing is spent or the rate is not known.
	// +optional
	RunwayHours *int64 `json:"runwayHours,omitempty"`
}

// RotationStep is how far a rotation has come.
//
// +kubebuilder:validation:Enum=Generate;Fund;CutOver;Drain;Sweep;Retire;Done
type RotationStep string

// RotationStatus is one rotation.
type RotationStatus struct {
	// Revision that the rotation leads to.
	// +required
	Revision int32 `json:"revision"`
	// Step that is under way.
	// +required
	Step RotationStep `json:"step"`
	// Since is when the step began.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// Message says what the step waits for.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// The states of a key.
const (
	// PayerActive: the fleet pays with it.
	PayerActive FeePayerState = "Active"
	// PayerIncoming: made for a rotation, and not yet used by the fleet.
	PayerIncoming FeePayerState = "Incoming"
	// PayerDraining: the fleet no longer uses it, and its funds are not swept yet.
	PayerDraining FeePayerState = "Draining"
	// PayerRetired: the key's funds are swept. Its Secret stays.
	PayerRetired FeePayerState = "Retired"
)

// The steps, in their order.
const (
	// RotationGenerate makes the new keys.
	RotationGenerate RotationStep = "Generate"
	// RotationFund moves funds from the old keys to the new, by a Job.
	RotationFund RotationStep = "Fund"
	// RotationCutOver replaces pods until all of them use the new keys and none the old.
	RotationCutOver RotationStep = "CutOver"
	// RotationDrain waits until nothing that the old keys paid for can still land.
	RotationDrain RotationStep = "Drain"
	// RotationSweep moves the remaining funds of the old keys to the new, by a Job.
	RotationSweep RotationStep = "Sweep"
	// RotationRetire marks the old keys as retired.
	RotationRetire RotationStep = "Retire"
	// RotationDone: nothing is left to do.
	RotationDone RotationStep = "Done"
)
