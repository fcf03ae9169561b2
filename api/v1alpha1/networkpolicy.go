package v1alpha1

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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

// Destination is where traffic may go: an address range, or pods of the cluster.
//
// +kubebuilder:validation:XValidation:rule="has(self.cidr) != (has(self.namespaceSelector) || has(self.podSelector))",message="a destination is either an address range or pods: set cidr, or namespaceSelector and podSelector, or one of these two"
type Destination struct {
	// CIDR is the address range. Default: none; without it, selectors are set.
	// Example: 10.20.0.0/16
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="cidr is no address range such as 10.20.0.0/16: write the address of the network, a slash and the length of its prefix"
	CIDR string `json:"cidr,omitempty"`
	// NamespaceSelector selects the namespaces of the pods. Default: the RelayPool's namespace.
	// Example: {matchLabels: {kubernetes.io/metadata.name: postgres}}
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// PodSelector selects the pods. Default: all pods of the namespaces.
	// Example: {matchLabels: {app: postgres}}
	// +optional
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`
	// Port is the TCP port; for pods, that of the pods, not of a Service. Example: 5432
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
}
