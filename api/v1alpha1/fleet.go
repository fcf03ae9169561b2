package v1alpha1

import (
	networkingv1 "k8s.io/api/networking/v1"
)

// API says how clients are served.
type API struct {
	// RequestsPerMinute is the limit for one client address, in requests a minute
	// and pod. 0 is no limit. Default: 600.
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	RequestsPerMinute *int32 `json:"requestsPerMinute,omitempty"`
	// ClientIPHeader is the header in which the proxy in front writes the client's
	// address. Default: the connection's address counts, which behind a proxy
	// makes all clients share one limit. Example: X-Real-IP
	// +optional
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9-]+$`
	// +kubebuilder:validation:MaxLength=128
	ClientIPHeader string `json:"clientIPHeader,omitempty"`
	// CORSOrigins are the origins of web pages that may call the interface, or *.
	// Default: none. Example: [https://app.example]
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:Pattern=`^(\*|https?://[^/,\s]+)$`
	// +kubebuilder:validation:items:MaxLength=256
	CORSOrigins []string `json:"corsOrigins,omitempty"`
	// KeysSecretRef is the Secret of the API keys, a line each, of which clients have to
	// present one. Default: everybody is served.
	// +optional
	KeysSecretRef *SecretKeyReference `json:"keysSecretRef,omitempty"`
	// WaitSeconds is how long a submission waits for its outcome, in seconds,
	// unless the client's Prefer header says otherwise. Default: 30.
	// +optional
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=60
	WaitSeconds *int32 `json:"waitSeconds,omitempty"`
	// RetentionHours is how long a finished submission can be asked for, in hours.
	// Default: 168, which is a week.
	// +optional
	// +kubebuilder:default=168
	// +kubebuilder:validation:Minimum=24
	// +kubebuilder:validation:Maximum=87600
	RetentionHours int32 `json:"retentionHours,omitempty"`
}

// Provider is what sizes the fleet.
//
// +kubebuilder:validation:Enum=HPA;KEDA
type Provider string

// The providers.
const (
	// ProviderHPA makes a HorizontalPodAutoscaler over an external metric.
	ProviderHPA Provider = "HPA"
	// ProviderKEDA makes a ScaledObject over the relay's /backlog.
	ProviderKEDA Provider = "KEDA"
)

// Autoscaling sizes the fleet by its backlog.
//
// +kubebuilder:validation:XValidation:rule="self.minReplicas <= self.maxReplicas",message="autoscaling.minReplicas is above autoscaling.maxReplicas: lower the one or raise the other"
type Autoscaling struct {
	// Provider makes the fleet grow: HPA, with an adapter that serves the external
	// metric relaypool_backlog_submissions, or KEDA. Default: HPA.
	// +optional
	// +kubebuilder:default=HPA
	Provider Provider `json:"provider,omitempty"`
	// MinReplicas is the least number of pods. Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=200
	MinReplicas int32 `json:"minReplicas,omitempty"`
	// MaxReplicas is the greatest number of pods. Example: 6
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=200
	MaxReplicas int32 `json:"maxReplicas"`
	// SubmissionsPerReplica is the backlog, in submissions, that justifies one pod.
	// Default: 64.
	// +optional
	// +kubebuilder:default=64
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	SubmissionsPerReplica int32 `json:"submissionsPerReplica,omitempty"`
	// OldestAgeSeconds is the age of the oldest waiting submission, in seconds, at
	// which the fleet grows however short the queue. Default: age does not count.
	// Example: 20
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	OldestAgeSeconds int32 `json:"oldestAgeSeconds,omitempty"`
}

// Switch turns a part on or off.
//
// +kubebuilder:validation:Enum=Enabled;Disabled
type Switch string

// The switches.
const (
	// Enabled makes the part.
	Enabled Switch = "Enabled"
	// Disabled leaves the part out, and deletes what was made of it.
	Disabled Switch = "Disabled"
)

// Monitoring makes objects for the Prometheus operator.
type Monitoring struct {
	// PodMonitor has Prometheus scrape every pod: Enabled or Disabled.
	// Default: Enabled.
	// +optional
	// +kubebuilder:default=Enabled
	PodMonitor Switch `json:"podMonitor,omitempty"`
	// PrometheusRule brings alerts that a person can act on: Enabled or Disabled.
	// Default: Enabled.
	// +optional
	// +kubebuilder:default=Enabled
	PrometheusRule Switch `json:"prometheusRule,omitempty"`
	// IntervalSeconds between scrapes, in seconds. Default: 15.
	// +optional
	// +kubebuilder:default=15
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=300
	IntervalSeconds int32 `json:"intervalSeconds,omitempty"`
	// Labels of both objects, by which a Prometheus finds them. Default: those of
	// every owned object. Example: {release: prometheus}
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k).hasValue() && self[k].size() <= 63)",message="monitoring.labels has a key that no label can have, or a value of more than 63 characters: expected keys such as team or example.com/team"
	Labels map[string]string `json:"labels,omitempty"`
}

// NetworkPolicy confines the pods' traffic: in, the API for everybody or for
// those named, and the operations port for the operator and those named; out,
// name lookups and what is named.
type NetworkPolicy struct {
	// APIFrom are who may reach the API. Default: everybody.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	APIFrom []networkingv1.NetworkPolicyPeer `json:"apiFrom,omitempty"`
	// OperationsFrom are who may reach metrics, probes and /backlog besides the
	// operator: Prometheus and KEDA. Default: nobody.
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
	// Router is where the swap router is. Default: nowhere; with swaps it is
	// required.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Router []Destination `json:"router,omitempty"`
}

// Destination is where traffic may go.
type Destination struct {
	// CIDR of the addresses. Example: 10.20.0.0/16
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="cidr is no address range such as 10.20.0.0/16: write the address of the network, a slash and the length of its prefix"
	CIDR string `json:"cidr"`
	// Port of TCP. Example: 5432
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
}
