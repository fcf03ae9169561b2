package v1alpha1

// API says how clients are served.
type API struct {
	// RequestsPerMinute is the most requests a minute that the fleet accepts from one client
	// address. 0 is no limit. Default: 600.
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	RequestsPerMinute *int32 `json:"requestsPerMinute,omitempty"`
	// ClientIPHeader is the header in which the proxy in front of the pods writes the
	// client's address. Default: none, and the connection's address counts; behind a
	// proxy, all clients then share one limit. Example: X-Real-IP
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
	// Service changes the Service that leads clients to the pods. Default: a Service of the type
	// ClusterIP.
	// +optional
	Service *Service `json:"service,omitempty"`
	// Ingress leads clients to the pods through an ingress controller. Default: no Ingress is
	// made.
	// +optional
	Ingress *Ingress `json:"ingress,omitempty"`
	// Gateway leads clients to the pods through Gateways of the Gateway API, by an HTTPRoute.
	// Default: no HTTPRoute is made.
	// +optional
	Gateway *Gateway `json:"gateway,omitempty"`
	// KeysSecretRef is the Secret with the API keys, one key per line. Clients have to
	// present one of them. Default: everybody is served.
	// +optional
	KeysSecretRef *SecretKeyReference `json:"keysSecretRef,omitempty"`
	// WaitSeconds is how long a request waits for its outcome, in seconds, unless its
	// Prefer header asks for another time. Default: 30.
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
