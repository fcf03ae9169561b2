package v1alpha1

import networkingv1 "k8s.io/api/networking/v1"

// NetworkPolicy confines the pods' traffic. Everybody, or only APIFrom, may reach the
// API. Only the operator and OperationsFrom may reach the operations port. The pods may
// reach only DNS and the named destinations.
type NetworkPolicy struct {
	// APIFrom lists who may reach the API. Default: everybody.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	APIFrom []networkingv1.NetworkPolicyPeer `json:"apiFrom,omitempty"`
	// OperationsFrom lists who, besides the operator, may reach metrics, probes and
	// /backlog, for example Prometheus and KEDA. Default: only the operator.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	OperationsFrom []networkingv1.NetworkPolicyPeer `json:"operationsFrom,omitempty"`
	// Database is where Postgres is.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Database []Destination `json:"database"`
	// RPC is where the chain's endpoints are.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	RPC []Destination `json:"rpc"`
	// Router is where the swap routers are. Default: nowhere; with swaps it is
	// required.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Router []Destination `json:"router,omitempty"`
	// Signers is where key services are. Default: nowhere besides the other destinations.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Signers []Destination `json:"signers,omitempty"`
}

// Destination is where traffic may go.
type Destination struct {
	// CIDR is the address range. Example: 10.20.0.0/16
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="cidr is no address range such as 10.20.0.0/16: write the address of the network, a slash and the length of its prefix"
	CIDR string `json:"cidr"`
	// Port is the TCP port. Example: 5432
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
}
