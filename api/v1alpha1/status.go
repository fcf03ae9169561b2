package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RelayPoolStatus is what the operator found. Figures change faster than the operator
// writes them here; the metrics have the current ones.
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
	// ObservedAt is when the figures were last written: nextIndex, backlog, balances and
	// runways. Other fields may be newer.
	// +optional
	ObservedAt *metav1.Time `json:"observedAt,omitempty"`
	// InitialisedAt is when the operator first found the pool initialised. After that,
	// spec.pool.gate no longer keeps pods from starting.
	// +optional
	InitialisedAt *metav1.Time `json:"initialisedAt,omitempty"`
	// DesiredReplicas is how many pods are wanted: the number that spec.replicas or the
	// autoscaler sets, or 0 while spec.pool.gate keeps pods from starting.
	// +optional
	DesiredReplicas int32 `json:"desiredReplicas"`
	// Replicas is how many pods there are, without terminating pods.
	// +optional
	Replicas int32 `json:"replicas"`
	// ReadyReplicas is how many pods serve clients.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`
	// TerminatingReplicas is how many pods are terminating. They hand over their work first.
	// +optional
	TerminatingReplicas int32 `json:"terminatingReplicas,omitempty"`
	// Selector is the label selector of the pods, for the scale subresource.
	// +optional
	Selector string `json:"selector,omitempty"`
	// API says where clients reach the fleet; absent without spec.api.ingress and
	// spec.api.gateway.
	// +optional
	API *APIStatus `json:"api,omitempty"`
	// NextIndex is how many leaves the pool's tree has, rounded.
	// +optional
	NextIndex *int64 `json:"nextIndex,omitempty"`
	// Backlog is how many submissions wait for a worker, rounded.
	// +optional
	Backlog *int64 `json:"backlog,omitempty"`
	// FeePayers are the fleet's fee payers, each with its public key.
	// +optional
	// +listType=map
	// +listMapKey=address
	// +kubebuilder:validation:MaxItems=128
	FeePayers []FeePayerStatus `json:"feePayers,omitempty"`
	// Rotation is the rotation under way, or the last one.
	// +optional
	Rotation *RotationStatus `json:"rotation,omitempty"`
}

// APIStatus says where clients reach the fleet.
type APIStatus struct {
	// Hosts are the host names of the Ingress and the HTTPRoute whose controllers have accepted
	// them.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	Hosts []string `json:"hosts,omitempty"`
	// Addresses are the IP addresses and host names of the load balancers of Ingress and Service,
	// to which DNS has to lead clients. An HTTPRoute has the addresses of its Gateways.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	Addresses []string `json:"addresses,omitempty"`
}

// FeePayerState is the stage of a fee payer key, between its creation and its retirement.
//
// +kubebuilder:validation:Enum=Active;Incoming;Draining;Retired
type FeePayerState string

// FeePayerStatus is the status of one fee payer key.
type FeePayerStatus struct {
	// Address is the public key, in base58; send SOL here to fund the key.
	// +required
	Address string `json:"address"`
	// SecretName is the Secret that holds the key; absent for a signer.
	// +optional
	SecretName string `json:"secretName,omitempty"`
	// SignerName is the signer of spec.feePayers.signers; absent for a key in a Secret.
	// +optional
	SignerName string `json:"signerName,omitempty"`
	// State of the key.
	// +required
	State FeePayerState `json:"state"`
	// BackedUp is true once a copy of the key is acknowledged: the Secret's annotation
	// relaypool.dev/backed-up has the address.
	// +optional
	BackedUp bool `json:"backedUp,omitempty"`
	// Lost is true while the Secret of a generated key is missing: its funds cannot be moved unless
	// the Secret is restored from a backup.
	// +optional
	Lost bool `json:"lost,omitempty"`
	// BalanceLamports is the last balance that could be read, rounded down to
	// 0.01 SOL.
	// +optional
	BalanceLamports *int64 `json:"balanceLamports,omitempty"`
	// RunwayHours is how long the balance lasts at the recent rate of spending,
	// rounded; absent while nothing is spent or the rate is not known.
	// +optional
	RunwayHours *int64 `json:"runwayHours,omitempty"`
}

// RotationStep is a step of a key rotation.
//
// +kubebuilder:validation:Enum=Generate;Fund;CutOver;Drain;Sweep;Retire;Done
type RotationStep string

// RotationStatus is the status of one key rotation.
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
	// PayerActive: the fleet pays with the key.
	PayerActive FeePayerState = "Active"
	// PayerIncoming: the key was made for a rotation, and the fleet does not use it yet.
	PayerIncoming FeePayerState = "Incoming"
	// PayerDraining: the fleet no longer uses the key, and the key's funds are not swept yet.
	PayerDraining FeePayerState = "Draining"
	// PayerRetired: the key's funds are swept. Its Secret stays.
	PayerRetired FeePayerState = "Retired"
)

// The steps, in their order.
const (
	// RotationGenerate makes the new keys.
	RotationGenerate RotationStep = "Generate"
	// RotationFund runs a Job that moves funds from the old keys to the new keys.
	RotationFund RotationStep = "Fund"
	// RotationCutOver replaces pods until every pod uses only the new keys.
	RotationCutOver RotationStep = "CutOver"
	// RotationDrain waits until no transaction that the old keys paid for can land any more.
	RotationDrain RotationStep = "Drain"
	// RotationSweep runs a Job that moves the remaining funds to the new keys.
	RotationSweep RotationStep = "Sweep"
	// RotationRetire marks the old keys as retired.
	RotationRetire RotationStep = "Retire"
	// RotationDone: nothing is left to do.
	RotationDone RotationStep = "Done"
)
