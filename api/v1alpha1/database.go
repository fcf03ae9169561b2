package v1alpha1

// Database is the fleet's Postgres. The operator never connects to it.
type Database struct {
	// URLSecretRef is the Secret with the database's URL,
	// postgres://user:password@host:port/name.
	// +required
	URLSecretRef SecretKeyReference `json:"urlSecretRef"`
	// MaxConnections is the most connections that one pod opens. Default: 40.
	// +optional
	// +kubebuilder:default=40
	// +kubebuilder:validation:Minimum=4
	// +kubebuilder:validation:Maximum=1000
	MaxConnections int32 `json:"maxConnections,omitempty"`
}
