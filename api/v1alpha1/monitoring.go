package v1alpha1

// Monitoring makes objects for the Prometheus operator.
type Monitoring struct {
	// PodMonitor creates a PodMonitor object, by which Prometheus scrapes every pod: Enabled
	// or Disabled.
	// Default: Enabled.
	// +optional
	// +kubebuilder:default=Enabled
	PodMonitor Switch `json:"podMonitor,omitempty"`
	// PrometheusRule creates alerts that a person can act on: Enabled or Disabled.
	// Default: Enabled.
	// +optional
	// +kubebuilder:default=Enabled
	PrometheusRule Switch `json:"prometheusRule,omitempty"`
	// IntervalSeconds is the time between scrapes, in seconds. Default: 15.
	// +optional
	// +kubebuilder:default=15
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=300
	IntervalSeconds int32 `json:"intervalSeconds,omitempty"`
	// Labels are set on both objects, so that a Prometheus finds them. Default: the
	// labels of every owned object. The given labels are added to these.
	// Example: {release: prometheus}
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k).hasValue() && self[k].size() <= 63)",message="monitoring.labels has a key that no label can have, or a value of more than 63 characters: expected keys such as team or example.com/team"
	Labels map[string]string `json:"labels,omitempty"`
}
