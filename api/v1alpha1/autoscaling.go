package v1alpha1

// Autoscaling sizes the fleet by its backlog.
//
// +kubebuilder:validation:XValidation:rule="self.minReplicas <= self.maxReplicas",message="autoscaling.minReplicas is above autoscaling.maxReplicas: lower the one or raise the other"
type Autoscaling struct {
	// Provider is what sizes the fleet: HPA or KEDA. HPA needs a server of the external
	// metric relaypool_backlog_submissions. Default: HPA. The operator or an adapter can
	// serve this metric.
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
	// SubmissionsPerReplica is the target backlog per pod, in submissions.
	// Default: 64.
	// +optional
	// +kubebuilder:default=64
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	SubmissionsPerReplica int32 `json:"submissionsPerReplica,omitempty"`
	// OldestAgeSeconds is the target age of the oldest waiting submission, in seconds.
	// Above it, the fleet grows even if the backlog is small. Default: age does not count.
	// Example: 20
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	OldestAgeSeconds int32 `json:"oldestAgeSeconds,omitempty"`
}

// Provider is what sizes the fleet.
//
// +kubebuilder:validation:Enum=HPA;KEDA
type Provider string

// The providers.
const (
	// ProviderHPA: the operator makes a HorizontalPodAutoscaler that reads external
	// metrics.
	ProviderHPA Provider = "HPA"
	// ProviderKEDA: the operator makes a ScaledObject that reads the relay's /backlog.
	ProviderKEDA Provider = "KEDA"
)
