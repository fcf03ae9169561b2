package v1alpha1

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
	// KeysSecretRef is the Secret of the API keys, one a line; clients have to present
	// one of them. Default: everybody is served.
	// +optional
	KeysSecretRef *SecretKeyReference `json:"keysSecretRef,omitempty"`
	// WaitSeconds is how long a submission waits for its outcome, in seconds,
	// unless the client's Prefer header says otherwise. Default: 30.
	// +optional
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=60
	WaitSeconds *int32 `json:"waitSeconds,omitempty"`
	// RetentionHours is how long a finished submission can be queried, in hours.
	// Default: 168, which is a week.
	// +optional
	// +kubebuilder:default=168
	// +kubebuilder:validation:Minimum=24
	// +kubebuilder:validation:Maximum=87600
	RetentionHours int32 `json:"retentionHours,omitempty"`
}
